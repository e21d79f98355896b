// Package virtual tests operators in virtual time, with the API server of the test kit: what
// happens, and what does not, over minutes and hours.
package virtual

import (
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

const definitions = "../../examples/crd"

var examples = kopf.Resource("kopf.dev", "v1", "kopfexamples")

// withOperator runs a test of an operator with a name and the handlers.
func withOperator(t *testing.T, declare func(*kopf.Registry), test func(*testing.T, *kopftest.Harness), options ...kopftest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, kopftest.New(t, func() *kopf.Registry {
			r := kopf.NewRegistry()
			declare(r)
			return r
		}, append(options, kopftest.CRDs(definitions), kopftest.Settings(func(s *kopf.Settings) { s.Name = "example.com" }))...))
	})
}

func newExample() *unstructured.Unstructured {
	return kopftest.Object(`{apiVersion: kopf.dev/v1, kind: KopfExample, metadata: {namespace: default, name: one}, spec: {color: blue, size: 3}}`)
}

// newTheme returns a config map without its content.
func newTheme() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "theme"},
	}
}
