package testenv

import (
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestLatencyIsADuration(t *testing.T) {
	g := gomega.NewWithT(t)
	for _, value := range []string{"slow", "-1s", "0"} {
		t.Setenv(Latency, value)
		g.Expect(delay(&rest.Config{})).To(gomega.MatchError(gomega.ContainSubstring(value)))
	}
}

// What is late arrives all the same.
func TestWatchesOverASlowNetwork(t *testing.T) {
	g, config := gomega.NewWithT(t), cluster.Config()
	t.Setenv(Latency, "50ms")
	g.Expect(delay(config)).To(gomega.Succeed())
	slow, err := client.NewWithWatch(config, client.Options{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	object := NewObject("KopfExample", cluster.Namespace(t), "one", nil)
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(object.GroupVersionKind())
	watch, err := slow.Watch(t.Context(), list, client.InNamespace(object.GetNamespace()))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	defer watch.Stop()
	g.Expect(cluster.Client().Create(t.Context(), object)).To(gomega.Succeed())
	select {
	case event := <-watch.ResultChan():
		g.Expect(event.Object).To(gomega.HaveField("GetName()", "one"))
	case <-time.After(Patience):
		t.Fatal("no event")
	}
}
