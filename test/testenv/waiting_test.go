package testenv

import (
	"testing"

	"github.com/onsi/gomega"
)

func TestMatchers(t *testing.T) {
	g := gomega.NewWithT(t)
	object := NewObject("KopfExample", "ns", "one", map[string]any{"field": "value"})
	object.SetAnnotations(map[string]string{"example.com/key": "text"})
	object.SetFinalizers([]string{"example.com/first", "example.com/second"})

	g.Expect(object).To(HavePath("spec.field", "value"))
	g.Expect(object).To(HavePath("spec.field", gomega.HavePrefix("val")))
	g.Expect(object).To(HavePath("status.field", nil))
	g.Expect(object).NotTo(HavePath("spec.field", nil))
	g.Expect(object).To(HaveAnnotation("example.com/key", "text"))
	g.Expect(object).To(HaveAnnotation("example.com/other", nil))
	g.Expect(object).To(HaveFinalizer("example.com/second"))
	g.Expect(object).NotTo(HaveFinalizer("example.com/third"))
}

func TestWaitingForAnObject(t *testing.T) {
	g := gomega.NewWithT(t)
	object := NewObject("KopfExample", cluster.Namespace(t), "one", nil)
	_, err := cluster.Current(object)()
	g.Expect(err).To(IsNotFound())
	g.Expect(cluster.Exists(object)()).To(gomega.BeFalse())

	g.Expect(cluster.Client().Create(t.Context(), object.DeepCopy())).To(gomega.Succeed())
	g.Eventually(cluster.Exists(object)).Should(gomega.BeTrue())
	g.Expect(object.GetUID()).To(gomega.BeEmpty(), "the given object was changed")

	g.Expect(cluster.Client().Delete(t.Context(), object)).To(gomega.Succeed())
	g.Eventually(cluster.Exists(object)).Should(gomega.BeFalse())
}
