package hierarchy_test

import (
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-go/kopf/pkg/hierarchy"
)

var wanted = map[string]string{"somelabel": "somevalue"}

func TestNestedLabelsOfTypedObjects(t *testing.T) {
	deployment, cronJob, set := &appsv1.Deployment{}, &batchv1.CronJob{}, &appsv1.StatefulSet{}
	objs := []metav1.Object{deployment, cronJob, set, &corev1.Pod{}}
	noError(t, hierarchy.Label(handling(), objs, hierarchy.Nested("spec.template", "spec.jobTemplate.spec.template")))
	equal(t, deployment.Spec.Template.Labels, wanted)
	equal(t, set.Spec.Template.Labels, wanted)
	equal(t, cronJob.Spec.JobTemplate.Labels, map[string]string(nil))
	equal(t, cronJob.Spec.JobTemplate.Spec.Template.Labels, wanted)
}

func TestOnlyLabelsAreNested(t *testing.T) {
	deployment := &appsv1.Deployment{}
	noError(t, hierarchy.Adopt(handling(), deployment, hierarchy.Nested("spec.template")))
	equal(t, deployment.Spec.Template.ObjectMeta, metav1.ObjectMeta{Labels: wanted})
	equal(t, deployment.ObjectMeta, adopted())
}

func TestSharedLabelsDoNotReachTheSelector(t *testing.T) {
	shared := map[string]string{"app": "web"}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Labels: shared}}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: shared}
	deployment.Spec.Template.Labels = shared
	noError(t, hierarchy.Label(handling(), deployment, hierarchy.Nested("spec.template")))
	both := map[string]string{"app": "web", "somelabel": "somevalue"}
	equal(t, deployment.Labels, both)
	equal(t, deployment.Spec.Template.Labels, both)
	equal(t, deployment.Spec.Selector.MatchLabels, map[string]string{"app": "web"})
}

func TestPodTemplateCanBeLabeledAlone(t *testing.T) {
	deployment := &appsv1.Deployment{}
	noError(t, hierarchy.Label(handling(), &deployment.Spec.Template))
	equal(t, deployment.Spec.Template.Labels, wanted)
	equal(t, deployment.Labels, map[string]string(nil))
}

// custom resembles the types of custom resources.
type custom struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              *customSpec `json:"spec,omitempty"`
}

type customSpec struct {
	customInline `json:",inline"`
	Pods         *corev1.PodTemplateSpec            `json:"pods"`
	ByName       map[string]*corev1.PodTemplateSpec `json:"byName"`
	Values       map[string]corev1.PodTemplateSpec  `json:"values"`
	Raw          runtime.RawExtension               `json:"raw"`
	Any          any                                `json:"any"`
	Free         map[string]any                     `json:"free.form"`
	Untagged     corev1.PodTemplateSpec
	hidden       corev1.PodTemplateSpec
}

type customInline struct {
	Own struct {
		Metadata struct {
			Labels map[string]string `json:"labels,omitempty"`
		} `json:"metadata"`
	} `json:"own"`
}

func TestNestedLabelsOfCustomTypes(t *testing.T) {
	obj := &custom{Spec: &customSpec{
		Pods: &corev1.PodTemplateSpec{}, ByName: map[string]*corev1.PodTemplateSpec{"a": {}},
		Any: map[string]any{}, Free: map[string]any{"t": map[string]any{}},
	}}
	noError(t, hierarchy.Label(handling(), obj,
		hierarchy.Nested("spec.own", "spec.pods", "spec.byName.a", "spec.byName.b", "spec.any", "spec.Untagged", "spec.absent.deep"),
		hierarchy.Nested("/spec/free.form/t")))
	equal(t, obj.Spec.Own.Metadata.Labels, wanted)
	equal(t, obj.Spec.Pods.Labels, wanted)
	equal(t, obj.Spec.ByName["a"].Labels, wanted)
	equal(t, obj.Spec.Untagged.Labels, wanted)
	inMap := map[string]any{"metadata": map[string]any{"labels": map[string]any{"somelabel": "somevalue"}}}
	equal(t, obj.Spec.Any, any(inMap))
	equal(t, obj.Spec.Free["t"], any(inMap))
	equal(t, len(obj.Spec.ByName), 1)
	equal(t, obj.Spec.hidden.Labels, map[string]string(nil))
}

func TestNestedFieldsThatCannotBeLabeled(t *testing.T) {
	for name, path := range map[string]string{
		"bytes":            "spec.raw",
		"a value of a map": "spec.values.a",
		"a map of objects": "spec.byName",
		"an empty path":    "",
	} {
		t.Run(name, func(t *testing.T) {
			obj := &custom{Spec: &customSpec{Values: map[string]corev1.PodTemplateSpec{"a": {}}, ByName: map[string]*corev1.PodTemplateSpec{}}}
			if err := hierarchy.Label(handling(), obj, hierarchy.Nested(path)); err == nil {
				t.Errorf("no error; %+v", obj.Spec)
			}
			equal(t, obj.Labels, map[string]string(nil))
		})
	}
	list := map[string]any{"spec": map[string]any{"containers": []any{}}}
	err := hierarchy.Label(handling(), list, hierarchy.Nested("spec.containers"))
	if err == nil || !strings.Contains(err.Error(), "spec.containers must be a mapping") {
		t.Errorf("got %v", err)
	}
}

func TestNestedLabelsLeaveNoTraces(t *testing.T) {
	cronJob := &batchv1.CronJob{}
	before, _ := json.Marshal(cronJob)
	noError(t, hierarchy.Label(handling(), cronJob, hierarchy.Nested("spec.jobTemplate"), hierarchy.Labels(nil)))
	after, _ := json.Marshal(cronJob)
	equal(t, string(after), string(before))
}
