package converge

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/model/convergence"
)

// What a function returns by mistake changes no child at all.
func TestMistakesInWhatAHandlerReturns(t *testing.T) {
	named := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	for name, test := range map[string]struct {
		returned []client.Object
		want     string
	}{
		"nothing in the place of a child": {[]client.Object{nil}, "a child is nil"},
		"no name":                         {[]client.Object{&corev1.ConfigMap{}}, "ConfigMap has no name: set one that is always the same"},
		"a generated name":                {[]client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "one-"}}}, "each call would create another one"},
		"a child twice":                   {[]client.Object{named("one"), named("one")}, "the child ConfigMap ns/one: the handler returned it twice"},
		"the parent itself":               {[]client.Object{named("shop")}, "it is the parent itself"},
		"no kind":                         {[]client.Object{&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "one"}}}}, `the child "one" has no apiVersion or no kind`},
		"a wave that is no number": {[]client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: "one", Annotations: map[string]string{convergence.WaveAnnotation: "first"},
		}}}, `the child "one" has an invalid wave`},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
			o.config.Scheme = scheme.Scheme
			o.owner.Parent.GVK = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"} // that of the children
			err := o.Converge(t.Context(), Call{Owner: o.owner, Options: &o.options, Log: o.log}, append(test.returned, named("other")))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
			if len(o.requests) > 0 {
				t.Errorf("got the requests %v", o.requests)
			}
		})
	}
}
