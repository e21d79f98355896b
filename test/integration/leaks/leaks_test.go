// Package leaks creates and deletes thousands of objects with everything that an object can
// have in memory, and checks that nothing remains.
package leaks

import (
	"runtime"
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

func TestMain(m *testing.M) { testenv.Main(m, &cluster, testenv.Options{}) }

const (
	// waves is how often all objects are created and deleted. The first wave grows maps
	// and pools to their final size; later waves must not add anything.
	waves = 5
	// spare is the memory that may remain without a leak: for requests in flight,
	// connections, and maps of the queue, whose size depends on the load. The smallest
	// state of an object is larger.
	spareGoroutines = 20
	spareBytes      = 200 // for every object after the first wave
	// lingering is the number of recently used objects that may remain: a few workers of
	// the queue, a few requests.
	lingering = 20
)

func TestDeletedObjectsLeaveNothingInMemory(t *testing.T) {
	g := gomega.NewWithT(t)
	w := &world{WithT: g, namespace: cluster.Namespace(t)}
	registry := kopf.NewRegistry()
	w.declare(registry)
	operators.Start(t, cluster.Config(), w.namespace, registry, func(o *kopf.Options) {
		o.Settings.Networking.QPS = -1
		o.Settings.Posting.Disabled = true // events use additional goroutines and objects
	})
	w.wave(t)
	heap, goroutines := w.heap(), runtime.NumGoroutine()
	for range waves - 1 {
		w.wave(t)
	}
	g.Eventually(runtime.NumGoroutine).Should(gomega.BeNumerically("<=", goroutines+spareGoroutines))
	g.Eventually(w.left).Should(gomega.HaveEach(gomega.BeNumerically("<=", lingering)))
	g.Eventually(func() int64 { return (w.heap() - heap) / ((waves - 1) * objects) }).Should(gomega.BeNumerically("<=", spareBytes))
	t.Logf("after %d objects: %d additional goroutines, %d additional bytes of heap, and remaining values: %v",
		waves*objects, runtime.NumGoroutine()-goroutines, w.heap()-heap, w.left())
}
