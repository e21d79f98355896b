package e2e

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
)

func testShards(t testing.TB, e *example) {
	g := gomega.NewWithT(t)
	replicas := map[string]*operator{}
	for _, name := range []string{"a", "b", "c"} {
		replicas[name] = e.startReplica(t, name)
	}
	var objects []*unstructured.Unstructured
	for number := range 12 {
		object := e.sample(t)
		object.SetName(fmt.Sprint("kopf-example-", number))
		objects = append(objects, created(t, object))
	}
	handledByRunning := func(g gomega.Gomega) {
		for _, object := range objects {
			current, err := cluster.Current(object)()
			g.Expect(err).NotTo(gomega.HaveOccurred())
			by, _, _ := unstructured.NestedString(current.Object, "status", "serve", "by")
			g.Expect(slices.Collect(maps.Keys(replicas))).To(gomega.ContainElement(by)) // a failure formats all that is given
		}
	}
	g.Eventually(handledByRunning).Should(gomega.Succeed())

	current, err := cluster.Current(objects[0])()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	by, _, _ := unstructured.NestedString(current.Object, "status", "serve", "by")
	replicas[by].kill()
	delete(replicas, by)
	g.Eventually(handledByRunning).Should(gomega.Succeed())
	for _, name := range []string{"a", "b", "c"} {
		if replicas[name] != nil {
			replicas[name].stop()
		}
	}
	e.demonstrate(t)
}

// startReplica starts a replica with a name.
func (e *example) startReplica(t testing.TB, name string) *operator {
	t.Helper()
	return e.startWith(t, []string{"--lease-namespace", e.namespace}, "REPLICA="+name)
}

// demonstrate runs the program without arguments until it has told its story. It stops all processes that it has started.
func (e *example) demonstrate(t testing.TB) {
	t.Helper()
	g := gomega.NewWithT(t)
	config, err := clientcmd.Load(cluster.KubeConfig())
	g.Expect(err).NotTo(gomega.HaveOccurred())
	config.Contexts[config.CurrentContext].Namespace = e.namespace
	g.Expect(clientcmd.WriteToFile(*config, e.kubeconfig())).To(gomega.Succeed())
	shown := e.startAs(t, nil)
	told := func() string { return string(shown.session.Out.Contents()) }
	for _, line := range []string{"  replica 3 handles object", "replica 2 is killed.", " from replica 2 to replica ", "replica 2 starts again.", " to replica 2\n", "That is all."} {
		g.Eventually(told).Should(gomega.ContainSubstring(line))
	}
	shown.stop()
	g.Expect(shown.output()).To(gomega.BeEmpty())
}
