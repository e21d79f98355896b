package admission

import (
	"context"
	"fmt"
	"testing"

	"github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

type operation = admissionregistrationv1.OperationType

func TestStatusIsReviewedByItsHandlers(t *testing.T) {
	t.Parallel()
	g := gomega.NewWithT(t)
	var seen notes
	look := func(id string) func(context.Context, *kopf.Admission) error {
		return func(_ context.Context, a *kopf.Admission) error {
			phase, _ := a.Status().String("phase")
			seen.add(fmt.Sprintf("%s: %q %s", id, a.Subresource(), phase))
			return nil
		}
	}
	registry := kopf.NewRegistry()
	updates := kopf.Operations("UPDATE")
	registry.OnValidate(examples, look("object"), kopf.ID("object"), updates)
	registry.OnValidate(examples, look("all"), kopf.ID("all"), kopf.Subresource("*"), updates)
	registry.OnMutate(examples, func(_ context.Context, a *kopf.Admission) error {
		a.Patch().Set("by the mutating handler", "status", "by")
		return nil
	}, kopf.ID("status"), kopf.Subresource("status"))
	o := start(t, registry)
	o.validating(t, hook{path: "object"}, hook{path: "all", resources: "kopf.dev/v1/kopfexamples/*"})
	o.mutating(t, hook{path: "status", resources: "kopf.dev/v1/kopfexamples/status"})

	object := o.object("one", map[string]any{})
	g.Expect(cluster.Client().Create(t.Context(), object)).To(gomega.Succeed())
	object.Object["status"] = map[string]any{"phase": "Ready"}
	g.Expect(cluster.Client().Status().Update(t.Context(), object)).To(gomega.Succeed())
	g.Expect(cluster.Current(object)()).To(testenv.HavePath("status", map[string]any{"phase": "Ready", "by": "by the mutating handler"}))
	g.Expect(seen.all()).To(gomega.ConsistOf(`all: "status" Ready`))
	object.SetLabels(map[string]string{"a": "b"})
	g.Expect(cluster.Client().Update(t.Context(), object)).To(gomega.Succeed())
	g.Expect(seen.all()).To(gomega.ConsistOf(`all: "status" Ready`, `all: "" Ready`, `object: "" Ready`))
}

func deployment(namespace string) *appsv1.Deployment {
	labels := map[string]string{"app": "one"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
			},
		},
	}
}

func TestScaleIsAnotherObject(t *testing.T) {
	t.Parallel()
	g := gomega.NewWithT(t)
	registry := kopf.NewRegistry()
	registry.OnValidate(deployments, func(_ context.Context, a *kopf.Admission) error {
		if replicas, _ := a.Spec().Int64("replicas"); a.Body().Kind() == "Scale" && replicas > 3 {
			before, _ := a.Old().View().Int64("spec", "replicas")
			return kopf.Reject(fmt.Sprintf("%s/%s cannot grow from %d to %d", a.Resource().Plural, a.Name(), before, replicas), 422)
		}
		return nil
	}, kopf.ID("limit"), kopf.Subresource("scale"))
	kopf.For[*appsv1.Deployment](registry).OnMutate(func(_ context.Context, _ *appsv1.Deployment, a *kopf.Admission) error {
		kopf.Update(a, func(d *appsv1.Deployment) error {
			d.Spec.Template.Spec.Containers[0].Image = "image-of-" + d.Name
			return nil
		})
		return nil
	}, kopf.ID("image"))
	o := start(t, registry)
	o.validating(t, hook{path: "limit", resources: "apps/v1/deployments/scale"})
	o.mutating(t, hook{path: "image", resources: "apps/v1/deployments"})

	created := deployment(o.namespace)
	g.Expect(cluster.Client().Create(t.Context(), created)).To(gomega.Succeed())
	g.Expect(created.Spec.Template.Spec.Containers[0].Image).To(gomega.Equal("image-of-one"))
	scale := func(replicas int32) error {
		return cluster.Client().SubResource("scale").Update(t.Context(), created, client.WithSubResourceBody(&autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: "one"}, Spec: autoscalingv1.ScaleSpec{Replicas: replicas},
		}))
	}
	g.Expect(scale(3)).To(gomega.Succeed())
	g.Expect(scale(4)).To(haveCode(422, "deployments/one cannot grow from 3 to 4"))
}

func TestConnectIsReviewed(t *testing.T) {
	t.Parallel()
	g := gomega.NewWithT(t)
	registry := kopf.NewRegistry()
	registry.OnValidate(pods, func(_ context.Context, a *kopf.Admission) error {
		command, _ := a.Body().View().Strings("command")
		return kopf.Reject(fmt.Sprintf("%s: %s %v in %s of %s", a.Operation(), a.Body().Kind(), command, a.Subresource(), a.Name()), 403)
	}, kopf.ID("noExec"), kopf.Operations("CONNECT"), kopf.Subresource("exec"))
	kopf.For[*corev1.Pod](registry).OnValidate(func(_ context.Context, handled *corev1.Pod, a *kopf.Admission) error {
		if handled != nil {
			return fmt.Errorf("a pod was not expected: %v", handled)
		}
		return nil
	}, kopf.ID("typed"), kopf.Operations("CONNECT"), kopf.Subresource("*"))
	o := start(t, registry)
	connect := []operation{"CONNECT"}
	o.validating(t,
		hook{path: "noExec", resources: "/v1/pods/exec", operations: connect},
		hook{path: "typed", resources: "/v1/pods/*", operations: connect})

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: "one"}, Spec: deployment("").Spec.Template.Spec}
	g.Expect(cluster.Client().Create(t.Context(), pod)).To(gomega.Succeed())
	clientset, err := kubernetes.NewForConfig(cluster.Config())
	g.Expect(err).NotTo(gomega.HaveOccurred())
	connected := func(subresource string) error {
		return clientset.CoreV1().RESTClient().Post().Namespace(o.namespace).Resource("pods").Name("one").SubResource(subresource).
			VersionedParams(&corev1.PodExecOptions{Command: []string{"sh"}, Stdout: true}, clientgoscheme.ParameterCodec).Do(t.Context()).Error()
	}
	g.Expect(connected("exec")).To(haveCode(403, "CONNECT: PodExecOptions [sh] in exec of one"))
	// The admitted request fails later, because the pod has no node.
	g.Expect(connected("proxy")).To(gomega.MatchError(gomega.Not(gomega.ContainSubstring("webhook"))))
}
