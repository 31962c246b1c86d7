// Package e2e pins the modules from which Kubernetes' own end-to-end program is built.
package e2e

import _ "k8s.io/kubernetes/test/e2e"
