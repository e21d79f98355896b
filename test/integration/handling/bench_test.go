package handling

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// bench is the environment of a test: handlers to declare, a namespace for its objects, and
// everything that its operators do: calls, requests, log lines, events.
type bench struct {
	*gomega.WithT
	*kopf.Registry
	t         *testing.T
	namespace string
	config    *rest.Config
	requests  *testenv.CountingTransport
	calls     *operators.Calls
	logs      *operators.Journal
}

func newBench(t *testing.T) *bench {
	b := &bench{
		WithT: gomega.NewWithT(t), Registry: kopf.NewRegistry(), t: t,
		namespace: cluster.Namespace(t), config: cluster.Config(), calls: &operators.Calls{}, logs: &operators.Journal{},
	}
	b.requests = testenv.Count(b.config)
	return b
}

// noted makes a handler record each of its calls with the number of its retry: "id 0".
func (b *bench) noted(id string, fn func(context.Context, *kopf.Change) error) func(context.Context, *kopf.Change) error {
	return func(ctx context.Context, c *kopf.Change) error {
		b.calls.Note("%s %d", id, c.Retry())
		return fn(ctx, c)
	}
}

// ours restricts a handler to the objects that own has marked: a test that looks beyond its
// namespace shares the cluster with other tests.
func (b *bench) ours() handler.Option {
	return kopf.Labels(map[string]kopf.Matcher{"test": kopf.Equal(b.namespace)})
}

func (b *bench) own(obj *unstructured.Unstructured) *unstructured.Unstructured {
	obj.SetLabels(map[string]string{"test": b.namespace})
	return obj
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

// create creates a new example object.
func (b *bench) create(name string, spec map[string]any) *unstructured.Unstructured {
	b.t.Helper()
	return b.submit(testenv.NewObject("KopfExample", b.namespace, name, spec))
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

// current returns the current object.
func (b *bench) current(obj *unstructured.Unstructured) *unstructured.Unstructured {
	b.t.Helper()
	current, err := cluster.Current(obj)()
	b.Expect(err).NotTo(gomega.HaveOccurred())
	return current
}

// expectHandled waits until the object needs no more work.
func (b *bench) expectHandled(obj *unstructured.Unstructured) *unstructured.Unstructured {
	b.t.Helper()
	b.Eventually(cluster.Current(obj)).Should(beHandled(), func() string { return b.logs.String() })
	return b.current(obj)
}

func (b *bench) expectGone(obj *unstructured.Unstructured) {
	b.t.Helper()
	b.Eventually(cluster.Exists(obj)).Should(gomega.BeFalse(), func() string { return b.logs.String() })
}

// quiet is long enough for an operator to do something unexpected.
const quiet = 300 * time.Millisecond

// expectRest waits until the operators have nothing left to do.
func (b *bench) expectRest() {
	b.t.Helper()
	b.Eventually(cluster.AtRest(b.requests)).Should(gomega.BeTrue(), b.requests.String)
}

// logged returns the lines of the log that contain all of the texts, for Eventually.
func (b *bench) logged(texts ...string) func() []string {
	return func() []string { return b.logs.With(texts...) }
}

// beHandled matches an object whose last essence was handled, and that has no records of
// handlers.
func beHandled() types.GomegaMatcher {
	return gomega.WithTransform(func(obj *unstructured.Unstructured) (string, error) {
		for key := range obj.GetAnnotations() {
			if strings.HasPrefix(key, prefix) && key != handled {
				return "in progress: " + key, nil
			}
		}
		base, err := baseOf(obj)
		if err != nil {
			return "", err
		}
		if !object.Equal(base["spec"], obj.Object["spec"]) {
			return "behind", nil
		}
		return "handled", nil
	}, gomega.Equal("handled"))
}

// baseOf returns the essence that was last handled.
func baseOf(obj *unstructured.Unstructured) (map[string]any, error) {
	text := obj.GetAnnotations()[handled]
	if text == "" {
		return nil, errors.New("the object was never handled")
	}
	var base map[string]any
	err := json.Unmarshal([]byte(text), &base)
	return base, err
}

func succeed(context.Context, *kopf.Change) error { return nil }

var errNotYet = errors.New("not yet")

// failing fails the given number of times before it succeeds.
func failing(times int, delay time.Duration) func(context.Context, *kopf.Change) error {
	return func(_ context.Context, c *kopf.Change) error {
		if c.Retry() < times {
			return kopf.Temporary(errNotYet, delay)
		}
		return nil
	}
}
