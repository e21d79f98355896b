package background

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// bench is the environment of a test: handlers to declare, a namespace for its objects,
// and everything that its operators do: runs, calls, requests, log lines, events.
type bench struct {
	*gomega.WithT
	*kopf.Registry
	t         *testing.T
	namespace string
	config    *rest.Config
	requests  *testenv.CountingTransport
	runs      *runs
	calls     *operators.Calls
	logs      *operators.Journal
}

func newBench(t *testing.T) *bench {
	b := &bench{
		WithT: gomega.NewWithT(t), Registry: kopf.NewRegistry(), t: t, namespace: cluster.Namespace(t),
		config: cluster.Config(), runs: newRuns(), calls: &operators.Calls{}, logs: &operators.Journal{},
	}
	b.requests = testenv.Count(b.config)
	return b
}

// start runs an operator with the handlers declared so far.
func (b *bench) start(adjust ...func(*kopf.Options)) *operators.Operator {
	b.t.Helper()
	usual := func(o *kopf.Options) {
		o.Logger = b.logs.Logger()
		o.Settings.Execution.CheckpointInterval = long // the writes must not depend on the machine's load
	}
	return operators.Start(b.t, b.config, b.namespace, b.Registry, append([]func(*kopf.Options){usual}, adjust...)...)
}

// impatient makes operators stop without waiting.
func impatient(o *kopf.Options) { o.Settings.Execution.GracePeriod = brief }

// counted counts the runs of a daemon as "id name".
func (b *bench) counted(id string, fn func(context.Context, *kopf.Task) error) func(context.Context, *kopf.Task) error {
	return func(ctx context.Context, t *kopf.Task) error {
		defer b.runs.enter(id + " " + t.Name())()
		return fn(ctx, t)
	}
}

// ticking counts the calls of a timer as "id name".
func (b *bench) ticking(id string, fn func(context.Context, *kopf.Tick) error) func(context.Context, *kopf.Tick) error {
	return func(ctx context.Context, t *kopf.Tick) error {
		defer b.runs.enter(id + " " + t.Name())()
		return fn(ctx, t)
	}
}

// untilStopped is a well-behaved daemon that records why it stops.
func (b *bench) untilStopped(_ context.Context, t *kopf.Task) error {
	<-t.Stopped()
	b.calls.Note("%s %s", t.Name(), t.StopReason())
	return nil
}

// slowToStop is a daemon that stops when the gate is open.
func (b *bench) slowToStop(g *gate) func(context.Context, *kopf.Task) error {
	return func(ctx context.Context, t *kopf.Task) error {
		_ = b.untilStopped(ctx, t)
		g.pass()
		return nil
	}
}

// gate blocks its callers until it is open.
type gate struct {
	entered, opened chan struct{}
	once            sync.Once
}

func newGate() *gate { return &gate{entered: make(chan struct{}, 1000), opened: make(chan struct{})} }

func (g *gate) pass() {
	g.entered <- struct{}{}
	<-g.opened
}

func (g *gate) open() { g.once.Do(func() { close(g.opened) }) }

// arrived waits until a caller waits at the gate.
func (b *bench) arrived(g *gate) {
	b.t.Helper()
	b.Eventually(g.entered).Should(gomega.Receive(), b.logs.String)
}

func (b *bench) create(name string, spec map[string]any) *unstructured.Unstructured {
	b.t.Helper()
	return b.submit(testenv.NewObject("KopfExample", b.namespace, name, spec))
}

// labelled creates an object with one label.
func (b *bench) labelled(name, key, value string) *unstructured.Unstructured {
	b.t.Helper()
	obj := testenv.NewObject("KopfExample", b.namespace, name, nil)
	obj.SetLabels(map[string]string{key: value})
	return b.submit(obj)
}

func (b *bench) submit(obj *unstructured.Unstructured) *unstructured.Unstructured {
	b.t.Helper()
	b.Expect(cluster.Client().Create(b.t.Context(), obj)).To(gomega.Succeed())
	return obj
}

// patch changes the object as another client does.
func (b *bench) patch(obj *unstructured.Unstructured, merge string) {
	b.t.Helper()
	b.Expect(cluster.Client().Patch(b.t.Context(), obj.DeepCopy(), mergePatch(merge))).To(gomega.Succeed())
}

func (b *bench) patchStatus(obj *unstructured.Unstructured, merge string) {
	b.t.Helper()
	b.Expect(cluster.Client().Status().Patch(b.t.Context(), obj.DeepCopy(), mergePatch(merge))).To(gomega.Succeed())
}

func mergePatch(text string) client.Patch {
	return client.RawPatch(apitypes.MergePatchType, []byte(text))
}

func (b *bench) remove(obj *unstructured.Unstructured) {
	b.t.Helper()
	b.Expect(cluster.Client().Delete(b.t.Context(), obj.DeepCopy())).To(gomega.Succeed())
}

func (b *bench) current(obj *unstructured.Unstructured) *unstructured.Unstructured {
	b.t.Helper()
	current, err := cluster.Current(obj)()
	b.Expect(err).NotTo(gomega.HaveOccurred())
	return current
}

func (b *bench) expectGone(obj *unstructured.Unstructured) {
	b.t.Helper()
	b.Eventually(cluster.Exists(obj)).Should(gomega.BeFalse(), b.logs.String)
}

// expectGoneAtOnce checks that nothing has held the object.
func (b *bench) expectGoneAtOnce(obj *unstructured.Unstructured) {
	b.t.Helper()
	b.Expect(cluster.Exists(obj)()).To(gomega.BeFalse(), b.logs.String)
}

// expectReleased waits until the object no longer has our finalizer.
func (b *bench) expectReleased(obj *unstructured.Unstructured) {
	b.t.Helper()
	b.Eventually(cluster.Current(obj)).ShouldNot(testenv.HaveFinalizer(finalizer), b.logs.String)
}

// expectRunning waits for the number of running handlers, and checks that no more have started.
func (b *bench) expectRunning(name string, now, begun int) {
	b.t.Helper()
	b.Eventually(b.runs.count(name)).Should(gomega.Equal(begun), b.logs.String)
	b.Eventually(b.runs.running(name)).Should(gomega.Equal(now), b.logs.String)
}

// expectRest waits until the operators have nothing left to do.
func (b *bench) expectRest() {
	b.t.Helper()
	b.Eventually(cluster.AtRest(b.requests)).Should(gomega.BeTrue(), b.requests.String)
}

// writes returns the writes to all example objects, except for conflicts with other
// clients, which depend on the delay of the watch.
func (b *bench) writes() int {
	total := 0
	for _, r := range b.requests.Requests() {
		if r.Resource == "kopfexamples" && r.Method == http.MethodPatch && r.Status != http.StatusConflict {
			total++
		}
	}
	return total
}

// expectWrites waits for the number of writes, and checks that there are no more.
func (b *bench) expectWrites(count int) {
	b.t.Helper()
	b.Eventually(b.writes).Should(gomega.BeNumerically(">=", count), b.requests.String)
	b.expectRest()
	b.Expect(b.writes()).To(gomega.Equal(count), b.requests.String)
}

// writesTo returns the writes to one object, whatever their outcome.
func (b *bench) writesTo(obj client.Object) int {
	total := 0
	for _, r := range b.requests.Requests() {
		if r.Name == obj.GetName() && r.Method == http.MethodPatch {
			total++
		}
	}
	return total
}
