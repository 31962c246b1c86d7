// The memcached operator as a program.
package main

import (
	"flag"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	cachev1alpha1 "example.com/memcached-operator/api/v1alpha1"
	"example.com/memcached-operator/internal/controller"
)

//go:generate go tool controller-gen object paths=../api/...
//go:generate go tool controller-gen crd paths=../api/... output:crd:dir=../config/crd/bases
//go:generate go tool controller-gen rbac:roleName=manager-role paths=../internal/... output:rbac:dir=../config/rbac

var scheme = runtime.NewScheme()

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(cachev1alpha1.AddToScheme(scheme))
}

func main() {
	metrics := flag.String("metrics-bind-address", ":8080", "where to serve metrics; 0 is nowhere")
	probes := flag.String("health-probe-bind-address", ":8081", "where to answer probes; 0 is nowhere")
	elect := flag.Bool("leader-elect", false, "work only while this replica holds the lease")
	options := zap.Options{}
	options.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&options)))

	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                 scheme,
		Metrics:                metricsserver.Options{BindAddress: *metrics},
		HealthProbeBindAddress: *probes,
		LeaderElection:         *elect,
		LeaderElectionID:       "memcached.cache.example.com",
	})
	exitOn(err, "Cannot make the manager")
	reconciler := &controller.MemcachedReconciler{
		Client:   mgr.GetClient(),
		Scheme:   mgr.GetScheme(),
		Recorder: mgr.GetEventRecorder("memcached-operator"),
	}
	exitOn(reconciler.SetupWithManager(mgr), "Cannot make the controller")
	exitOn(mgr.AddHealthzCheck("healthz", healthz.Ping), "Cannot add the health check")
	exitOn(mgr.AddReadyzCheck("readyz", healthz.Ping), "Cannot add the readiness check")
	exitOn(mgr.Start(ctrl.SetupSignalHandler()), "The manager failed")
}

func exitOn(err error, message string) {
	if err != nil {
		ctrl.Log.WithName("setup").Error(err, message)
		os.Exit(1)
	}
}
