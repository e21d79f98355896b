// Package lifecycle tests how operators start and stop: alone, several in one process,
// and in the manager of another program.
package lifecycle

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

var (
	cluster  *testenv.Cluster
	examples = kopf.Resource("kopf.dev", "v1", "kopfexamples")
	errNo    = errors.New("no")
)

func TestMain(m *testing.M) {
	testenv.Main(m, &cluster, testenv.Options{CRDs: []string{"config/crd/kopf.dev", testenv.ExampleCRDs, "test/integration/conditions/testdata"}})
}

// notes are what has happened, in order.
type notes struct {
	mu    sync.Mutex
	lines []string
}

func (n *notes) add(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, line)
}

func (n *notes) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.lines)
}

// created notes the objects that a handler sees.
func (n *notes) created(_ context.Context, c *kopf.Change) error {
	n.add("created " + c.Name())
	return nil
}

// run runs an operator until stop is called, which waits for its end.
func run(t *testing.T, options kopf.Options) (o *kopf.Operator, stop func() error) {
	t.Helper()
	options.Logger = testenv.Logger()
	o, err := kopf.NewOperator(options)
	gomega.NewWithT(t).Expect(err).NotTo(gomega.HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx) }()
	t.Cleanup(cancel)
	return o, func() error {
		cancel()
		return <-done
	}
}

func create(t *testing.T, namespace, name string) {
	t.Helper()
	object := testenv.NewObject("KopfExample", namespace, name, nil)
	gomega.NewWithT(t).Expect(cluster.Client().Create(t.Context(), object)).To(gomega.Succeed())
}

func scoped(namespace string) (s kopf.Settings) {
	s.Scope.Namespaces = []string{namespace}
	return s
}
