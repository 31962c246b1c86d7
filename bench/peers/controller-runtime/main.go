// Keeps a ConfigMap and a Deployment for each Widget, on controller-runtime. WRITES=compare, the default, compares with the
// cache and writes what differs (controllerutil.CreateOrUpdate); WRITES=apply applies them in every pass.
package main

import (
	"context"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	manager = "bench"
	image   = "registry.example.com/bench/program:1.2.3"
	// The default is one; operators of many objects raise it.
	concurrency = 10
)

type reconciler struct {
	client.Client
	scheme  *runtime.Scheme
	applies bool
}

// Reconcile looks at one Widget and acts.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	widget := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !widget.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	meta := metav1.ObjectMeta{Name: req.Name, Namespace: req.Namespace}
	configMap := &corev1.ConfigMap{ObjectMeta: meta}
	if err := r.keep(ctx, widget, configMap, "v1", "ConfigMap", func() { shapeConfigMap(widget, configMap) }); err != nil {
		return ctrl.Result{}, err
	}
	deployment := &appsv1.Deployment{ObjectMeta: meta}
	if err := r.keep(ctx, widget, deployment, "apps/v1", "Deployment", func() { shapeDeployment(widget, deployment) }); err != nil {
		return ctrl.Result{}, err
	}
	wanted := WidgetStatus{Ready: true, ObservedGeneration: widget.Generation}
	if widget.Status == wanted {
		return ctrl.Result{}, nil
	}
	before := widget.DeepCopyObject().(*Widget)
	widget.Status = wanted
	return ctrl.Result{}, r.Status().Patch(ctx, widget, client.MergeFrom(before))
}

// keep makes a child as it should be.
func (r *reconciler) keep(ctx context.Context, widget *Widget, child client.Object, version, kind string, shape func()) error {
	if !r.applies {
		_, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
			shape()
			return controllerutil.SetControllerReference(widget, child, r.scheme)
		})
		return err
	}
	shape()
	if err := controllerutil.SetControllerReference(widget, child, r.scheme); err != nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child)
	if err != nil {
		return err
	}
	delete(content, "status")
	applied := configuration(content, version, kind)
	return r.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner(manager), client.ForceOwnership)
}

func shapeConfigMap(widget *Widget, configMap *corev1.ConfigMap) {
	configMap.Data = map[string]string{"text": widget.Spec.Text}
}

// shapeDeployment sets what is wanted and leaves what the API server fills in.
func shapeDeployment(widget *Widget, deployment *appsv1.Deployment) {
	labels := map[string]string{"widget": widget.Name}
	replicas := widget.Spec.Replicas
	spec := &deployment.Spec
	spec.Replicas = &replicas
	spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	spec.Template.Labels = labels
	if len(spec.Template.Spec.Containers) != 1 {
		spec.Template.Spec.Containers = make([]corev1.Container, 1)
	}
	container := &spec.Template.Spec.Containers[0]
	container.Name, container.Image = "main", image
	if len(container.Ports) != 1 {
		container.Ports = []corev1.ContainerPort{{Protocol: corev1.ProtocolTCP}}
	}
	container.Ports[0].Name, container.Ports[0].ContainerPort = "http", 8080
}

func main() {
	ctrl.SetLogger(zap.New())
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	addToScheme(scheme)
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	exitOn(err)
	r := &reconciler{Client: mgr.GetClient(), scheme: scheme, applies: os.Getenv("WRITES") == "apply"}
	exitOn(ctrl.NewControllerManagedBy(mgr).
		For(&Widget{}).
		Owns(&corev1.ConfigMap{}).
		Owns(&appsv1.Deployment{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		Complete(r))
	exitOn(mgr.Start(ctrl.SetupSignalHandler()))
}

func exitOn(err error) {
	if err != nil {
		ctrl.Log.Error(err, "Cannot go on")
		os.Exit(1)
	}
}
