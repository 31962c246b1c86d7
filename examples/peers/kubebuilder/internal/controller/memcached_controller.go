// Package controller keeps memcached clusters as they are wanted.
package controller

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	cachev1alpha1 "example.com/memcached-operator/api/v1alpha1"
)

const (
	port         = 11211
	defaultImage = "memcached:1.6"
	nameLabel    = "app.kubernetes.io/name"
	ownerLabel   = "app.kubernetes.io/instance"
	conditionOK  = "Ready"
)

// MemcachedReconciler brings a Memcached to where it is declared to be.
type MemcachedReconciler struct {
	client.Client
	Scheme   *runtime.Scheme
	Recorder events.EventRecorder
}

// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds,verbs=get;list;watch
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile looks at one Memcached and acts.
func (r *MemcachedReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	memcached := &cachev1alpha1.Memcached{}
	if err := r.Get(ctx, req.NamespacedName, memcached); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !memcached.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: req.Name, Namespace: req.Namespace}}
	if err := r.keep(ctx, memcached, deployment, func() { shapeDeployment(memcached, deployment) }); err != nil {
		return ctrl.Result{}, err
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: req.Name, Namespace: req.Namespace}}
	if err := r.keep(ctx, memcached, service, func() { shapeService(memcached, service) }); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, memcached)
}

// keep makes a child, or changes what of it is not as wanted, and tells of it.
func (r *MemcachedReconciler) keep(ctx context.Context, memcached *cachev1alpha1.Memcached, child client.Object, shape func()) error {
	done, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
		shape()
		return controllerutil.SetControllerReference(memcached, child, r.Scheme)
	})
	kind := fmt.Sprintf("%T", child)
	if err != nil {
		r.Recorder.Eventf(memcached, nil, corev1.EventTypeWarning, "Failed", "Keep", "%s %s: %v", kind, child.GetName(), err)
		return err
	}
	if done != controllerutil.OperationResultNone {
		r.Recorder.Eventf(memcached, nil, corev1.EventTypeNormal, "Kept", "Keep", "%s %s was %s", kind, child.GetName(), done)
	}
	return nil
}

// report writes the status, if it is another than before.
func (r *MemcachedReconciler) report(ctx context.Context, memcached *cachev1alpha1.Memcached) error {
	var pods corev1.PodList
	if err := r.List(ctx, &pods, client.InNamespace(memcached.Namespace), client.MatchingLabels(labelsOf(memcached))); err != nil {
		return err
	}
	status := memcached.Status.DeepCopy()
	status.Nodes, status.Replicas = nil, 0
	ready := int32(0)
	for _, pod := range pods.Items {
		if !pod.DeletionTimestamp.IsZero() || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
			continue
		}
		status.Nodes = append(status.Nodes, pod.Name)
		status.Replicas++
		if isReady(&pod) {
			ready++
		}
	}
	slices.Sort(status.Nodes)
	status.Selector = labels.SelectorFromSet(labelsOf(memcached)).String()
	condition := metav1.Condition{
		Type: conditionOK, Status: metav1.ConditionFalse, Reason: "Progressing", ObservedGeneration: memcached.Generation,
		Message: fmt.Sprintf("%d of %d Pods are ready", ready, memcached.Spec.Size),
	}
	if ready == memcached.Spec.Size && status.Replicas == memcached.Spec.Size {
		condition.Status, condition.Reason = metav1.ConditionTrue, "Settled"
	}
	meta.SetStatusCondition(&status.Conditions, condition)
	if equality.Semantic.DeepEqual(*status, memcached.Status) {
		return nil
	}
	memcached.Status = *status
	return r.Status().Update(ctx, memcached)
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}

// shapeDeployment sets what is wanted and leaves what the API server fills in.
func shapeDeployment(memcached *cachev1alpha1.Memcached, deployment *appsv1.Deployment) {
	deployment.Labels = merged(deployment.Labels, labelsOf(memcached))
	deployment.Spec.Replicas = &memcached.Spec.Size
	if deployment.CreationTimestamp.IsZero() {
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labelsOf(memcached)}
	}
	template := &deployment.Spec.Template
	template.Labels = merged(template.Labels, labelsOf(memcached))
	if len(template.Spec.Containers) != 1 {
		template.Spec.Containers = []corev1.Container{{}}
	}
	container := &template.Spec.Containers[0]
	container.Name = "memcached"
	container.Image = memcached.Spec.Image
	if container.Image == "" {
		container.Image = defaultImage
	}
	container.Ports = []corev1.ContainerPort{{Name: "memcached", ContainerPort: port, Protocol: corev1.ProtocolTCP}}
	if container.ReadinessProbe == nil {
		container.ReadinessProbe = &corev1.Probe{}
	}
	probe := container.ReadinessProbe
	probe.ProbeHandler = corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(port)}}
	probe.InitialDelaySeconds, probe.PeriodSeconds = 1, 2
}

// shapeService makes it headless: a client of memcached spreads its keys over all nodes, so it has to see each of them.
func shapeService(memcached *cachev1alpha1.Memcached, service *corev1.Service) {
	service.Labels = merged(service.Labels, labelsOf(memcached))
	service.Spec.ClusterIP = corev1.ClusterIPNone
	service.Spec.Selector = labelsOf(memcached)
	service.Spec.Ports = []corev1.ServicePort{{
		Name: "memcached", Port: port, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(port),
	}}
}

func labelsOf(memcached *cachev1alpha1.Memcached) map[string]string {
	return map[string]string{nameLabel: "memcached", ownerLabel: memcached.Name}
}

func merged(old, wanted map[string]string) map[string]string {
	if old == nil {
		return wanted
	}
	for key, value := range wanted {
		old[key] = value
	}
	return old
}

// ownerOf finds the Memcached that a Pod belongs to: it is owned by a ReplicaSet, not by the Memcached itself.
func ownerOf(_ context.Context, pod client.Object) []reconcile.Request {
	if pod.GetLabels()[nameLabel] != "memcached" || pod.GetLabels()[ownerLabel] == "" {
		return nil
	}
	name := types.NamespacedName{Namespace: pod.GetNamespace(), Name: pod.GetLabels()[ownerLabel]}
	return []reconcile.Request{{NamespacedName: name}}
}

// SetupWithManager says what is watched.
func (r *MemcachedReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&cachev1alpha1.Memcached{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(ownerOf)).
		Named("memcached").
		Complete(r)
}
