// Package controller has the handlers of sites and schedules.
package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	webv1 "github.com/kopf-go/kopf/examples/kubebuilder/api/v1"
	"github.com/kopf-go/kopf/pkg/hierarchy"
	"github.com/kopf-go/kopf/pkg/kopf"
)

// DefaultImage serves the files in /srv on port 8080.
const DefaultImage = "example.com/web-server:1.0"

// siteLabel is on all children of a site. Its value is the name of the site.
const siteLabel = "web.example.com/site"

// What the operator itself needs: to watch the objects, to store its state on them, to post
// events, and to notice resources that are installed later.
//
// +kubebuilder:rbac:groups=web.example.com,resources=sites;schedules,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=web.example.com,resources=sites/status;schedules/status,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=list;watch

// What the handlers need for the children. The client of a manager lists and watches what it
// gets.
//
// +kubebuilder:rbac:groups="",resources=configmaps;services,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=create;update

// AddSites declares the handlers of sites.
func AddSites(registry *kopf.Registry) {
	sites := kopf.For[*webv1.Site](registry)
	sites.OnCreate(deploy)
	sites.OnUpdate(deploy)
	sites.OnResume(deploy) // a new version of the operator may deploy something else
	// Kubernetes deletes the children with the site: they have an owner reference. So there is
	// no deletion handler, and no finalizer.

	deployments := kopf.For[*appsv1.Deployment](registry)
	deployments.OnEvent(reportReady, kopf.Labels(map[string]kopf.Matcher{siteLabel: kopf.Present()}))
}

// AddSiteAdmission declares the handlers that are called before a site is stored.
func AddSiteAdmission(registry *kopf.Registry) {
	sites := kopf.For[*webv1.Site](registry)
	sites.OnMutate(setDefaults, kopf.Operations("CREATE", "UPDATE"))
	sites.OnValidate(checkImage, kopf.Operations("CREATE", "UPDATE"))
}

// deploy makes the children what the spec says. It can be repeated: a handler that fails
// halfway is called again.
func deploy(ctx context.Context, site *webv1.Site, c *kopf.Change) error {
	config := &corev1.ConfigMap{ObjectMeta: childMeta(site)}
	deployment := &appsv1.Deployment{ObjectMeta: childMeta(site)}
	service := &corev1.Service{ObjectMeta: childMeta(site)}
	err := errors.Join(
		apply(ctx, c, config, func() { config.Data = map[string]string{"index.html": site.Spec.Message} }),
		apply(ctx, c, deployment, func() { fillDeployment(deployment, site) }),
		apply(ctx, c, service, func() { fillService(service, site) }),
	)
	if err != nil {
		return err
	}
	kopf.Update(c, func(latest *webv1.Site) error {
		latest.Status.URL = fmt.Sprintf("http://%s.%s", service.Name, service.Namespace)
		return nil
	})
	return nil
}

// apply creates the child, or updates it if it differs.
func apply(ctx context.Context, c *kopf.Change, child client.Object, change func()) error {
	_, err := controllerutil.CreateOrUpdate(ctx, c.Client(), child, func() error {
		change()
		return hierarchy.Adopt(ctx, child)
	})
	return err
}

func childMeta(site *webv1.Site) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name}
}

func labelsOf(site *webv1.Site) map[string]string { return map[string]string{siteLabel: site.Name} }

func fillDeployment(deployment *appsv1.Deployment, site *webv1.Site) {
	deployment.Labels = labelsOf(site)
	deployment.Spec.Replicas = site.Spec.Replicas
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labelsOf(site)}
	deployment.Spec.Template.Labels = labelsOf(site)
	pod := &deployment.Spec.Template.Spec
	if len(pod.Containers) == 0 {
		pod.Containers = []corev1.Container{{Name: "web"}}
	}
	web := &pod.Containers[0] // the API server has added defaults to it, which must stay
	web.Image = imageOf(site)
	web.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}}
	web.VolumeMounts = []corev1.VolumeMount{{Name: "files", MountPath: "/srv"}}
	if len(pod.Volumes) == 0 {
		pod.Volumes = []corev1.Volume{{Name: "files", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}}}
	}
	pod.Volumes[0].ConfigMap.Name = site.Name
}

func fillService(service *corev1.Service, site *webv1.Site) {
	service.Spec.Selector = labelsOf(site)
	service.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("http"), Protocol: corev1.ProtocolTCP}}
}

// imageOf is for sites that were stored before there was a default.
func imageOf(site *webv1.Site) string {
	if site.Spec.Image == "" {
		return DefaultImage
	}
	return site.Spec.Image
}

// reportReady copies what the deployment has achieved to the status of its site. When the operator
// starts, it gets an event for each deployment. It is not repeated after an error: the next event
// of the deployment brings what is missing. If that is too late, call it from a timer, too.
func reportReady(ctx context.Context, deployment *appsv1.Deployment, e *kopf.WatchEvent) error {
	site := &webv1.Site{}
	key := client.ObjectKey{Namespace: deployment.Namespace, Name: deployment.Labels[siteLabel]}
	if err := e.Client().Get(ctx, key, site); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !metav1.IsControlledBy(deployment, site) || site.Status.ReadyReplicas == deployment.Status.ReadyReplicas {
		return nil
	}
	before := site.DeepCopy()
	site.Status.ReadyReplicas = deployment.Status.ReadyReplicas
	return e.Client().Status().Patch(ctx, site, client.MergeFrom(before))
}

// setDefaults fills in what the user has left out.
func setDefaults(_ context.Context, site *webv1.Site, a *kopf.Admission) error {
	if site.Spec.Image == "" {
		a.Patch().Set(DefaultImage, "spec", "image")
	}
	if site.Spec.Replicas == nil {
		a.Patch().Set(1, "spec", "replicas")
	}
	return nil
}

// checkImage rejects what the schema cannot describe.
func checkImage(_ context.Context, site *webv1.Site, a *kopf.Admission) error {
	if _, tag, tagged := strings.Cut(site.Spec.Image, ":"); !tagged || tag == "latest" {
		return kopf.Reject(fmt.Sprintf("The image %q needs a tag other than latest, which does not say what is deployed.", site.Spec.Image), 422)
	}
	return nil
}
