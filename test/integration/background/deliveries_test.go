package background

import (
	"context"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/test/testenv"
)

// contribute fills the patches of the daemons and timers in these tests.
func contribute(p *patch.Patch, setResult func(any)) {
	p.SetLabel("seen", "yes")
	p.Set("value", "spec", "set")
	p.Set("value", "status", "set")
	p.Apply(func(obj *unstructured.Unstructured) error {
		return unstructured.SetNestedField(obj.Object, "value", "spec", "transformed")
	})
	setResult(map[string]any{"done": true})
}

// recipients are the resources to write to, with the number of writes.
var recipients = map[string]struct {
	selector kopf.Selector
	kind     string
	writes   int
}{
	"to a resource with a status subresource":    {examples, "KopfExample", 2},
	"to a resource without a status subresource": {noStatuses, "KopfNoStatus", 1},
}

// contributors are the handlers that request writes.
var contributors = map[string]struct {
	declare func(b *bench, selector kopf.Selector)
	writes  int // in addition to the contributions
}{
	"of a daemon": {func(b *bench, selector kopf.Selector) {
		b.Daemon(selector, func(_ context.Context, task *kopf.Task) error {
			contribute(task.Patch(), task.SetResult)
			return nil
		}, kopf.ID("fn"))
	}, 2},
	"of a daemon that stops": {func(b *bench, selector kopf.Selector) {
		b.Daemon(selector, func(_ context.Context, task *kopf.Task) error {
			<-task.Stopped()
			contribute(task.Patch(), task.SetResult)
			return nil
		}, kopf.ID("fn"), kopf.When(unseen))
		b.OnEvent(selector, func(_ context.Context, e *kopf.WatchEvent) error {
			if len(e.Body().Finalizers()) > 0 && e.Labels()["seen"] == "" {
				e.Patch().SetLabel("seen", "soon") // the daemon no longer matches
			}
			return nil
		}, kopf.ID("event"))
	}, 3},
	"of a timer": {func(b *bench, selector kopf.Selector) {
		b.Timer(selector, func(_ context.Context, tick *kopf.Tick) error {
			contribute(tick.Patch(), tick.SetResult)
			return nil
		}, kopf.ID("fn"), kopf.Interval(brief)) // unchanged values are not written again
	}, 0},
}

func TestResultsAndPatchesAreWritten(t *testing.T) {
	t.Parallel()
	for name, resource := range recipients {
		for author, handler := range contributors {
			t.Run(name+" "+author, func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				handler.declare(b, resource.selector)
				b.start()
				obj := b.submit(testenv.NewObject(resource.kind, b.namespace, "one", nil))
				b.Eventually(cluster.Current(obj)).Should(gomega.SatisfyAll(
					testenv.HavePath("metadata.labels.seen", "yes"), testenv.HavePath("spec.set", "value"),
					testenv.HavePath("spec.transformed", "value"), testenv.HavePath("status.set", "value"),
					testenv.HavePath("status.fn", map[string]any{"done": true})), b.logs.String)
				b.expectReleased(obj)
				b.expectRest()
				b.Expect(b.writesTo(obj)).To(gomega.Equal(resource.writes+handler.writes), b.requests.String)
				b.remove(obj)
				b.expectGone(obj)
			})
		}
	}
}

func unseen(a kopf.Arguments) bool { return a.Labels()["seen"] == "" }

// The results of a stopping daemon are written before its object is deleted or its operator
// exits.
func TestLastResultOfStoppedDaemonIsWritten(t *testing.T) {
	t.Parallel()
	tests := map[string]func(b *bench, obj *unstructured.Unstructured, stop func()){
		"when its object is deleted": func(b *bench, obj *unstructured.Unstructured, _ func()) { b.remove(obj) },
		"when its operator exits":    func(_ *bench, _ *unstructured.Unstructured, stop func()) { stop() },
	}
	for name, end := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.Daemon(examples, b.counted("watch", func(_ context.Context, task *kopf.Task) error {
				<-task.Stopped()
				task.SetResult("stopped")
				return nil
			}), kopf.ID("watch"))
			operator := b.start()
			obj := testenv.NewObject("KopfExample", b.namespace, "one", nil)
			obj.SetFinalizers([]string{"example.com/other"})
			b.submit(obj)
			b.expectRunning("watch one", 1, 1)
			end(b, obj, operator.Stop)
			b.Eventually(cluster.Current(obj)).Should(testenv.HavePath("status.watch", "stopped"), b.logs.String)
			b.expectRest()
			b.Expect(b.writes()).To(gomega.BeNumerically("<=", 3), b.requests.String)
		})
	}
}

// overtaken returns a transformation that lets another client write first, once.
func (b *bench) overtaken(edit func()) patch.Transform {
	edited := false
	return func(obj *unstructured.Unstructured) error {
		if !edited {
			edited = true
			edit()
		}
		b.calls.Note("transformed")
		items, _, err := unstructured.NestedStringSlice(obj.Object, "spec", "items")
		if err != nil {
			return err
		}
		return unstructured.SetNestedStringSlice(obj.Object, append(items, "ours"), "spec", "items")
	}
}

var transformers = map[string]func(b *bench, transform patch.Transform){
	"of a daemon": func(b *bench, transform patch.Transform) {
		b.Daemon(examples, b.counted("fn", func(_ context.Context, task *kopf.Task) error {
			task.Patch().Apply(transform)
			task.SetResult("done")
			return nil
		}), kopf.ID("fn"))
	},
	"of a timer": func(b *bench, transform patch.Transform) {
		b.Timer(examples, b.ticking("fn", func(_ context.Context, tick *kopf.Tick) error {
			tick.Patch().Apply(transform)
			tick.SetResult("done")
			return nil
		}), kopf.ID("fn"))
	},
}

func TestTransformationIsRepeatedAfterAConflict(t *testing.T) {
	t.Parallel()
	for name, declare := range transformers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			obj := testenv.NewObject("KopfExample", b.namespace, "one", map[string]any{"items": []any{"first"}})
			declare(b, b.overtaken(func() { b.patch(obj, `{"spec":{"items":["first","theirs"],"other":"theirs"}}`) }))
			b.start()
			b.submit(obj.DeepCopy()) // the other client uses its own copy
			b.Eventually(cluster.Current(obj)).Should(gomega.SatisfyAll(
				testenv.HavePath("spec.items", []any{"first", "theirs", "ours"}),
				testenv.HavePath("spec.other", "theirs"), testenv.HavePath("status.fn", "done")), b.logs.String)
			b.expectRest()
			b.Expect(len(b.calls.All())).To(gomega.BeNumerically(">=", 2))
			b.Expect(b.current(obj)).To(testenv.HavePath("spec.items", []any{"first", "theirs", "ours"}), "once")
			b.expectRunning("fn one", 0, 1)
		})
	}
}

// A write that the API server rejects fails only its author.
func TestRejectedWritesAreReported(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Timer(examples, b.ticking("bad", func(_ context.Context, tick *kopf.Tick) error {
		tick.Patch().Set("no label", "metadata", "labels", "is valid")
		tick.Patch().Set("lost", "spec", "bad")
		return nil
	}), kopf.ID("bad"), kopf.Interval(brief))
	b.Timer(examples, b.ticking("good", func(_ context.Context, tick *kopf.Tick) error {
		tick.SetResult(b.runs.count("good one")())
		return nil
	}), kopf.ID("good"), kopf.Interval(brief))
	b.start()
	obj := b.create("one", nil)
	b.Eventually(cluster.Events(obj)).Should(gomega.ContainElement(gomega.HavePrefix("Warning WriteRejected: Handler bad failed")))
	b.Eventually(b.runs.count("bad one")).Should(gomega.BeNumerically(">", 3))
	b.Eventually(cluster.Current(obj)).Should(testenv.HavePath("status.good", gomega.BeNumerically(">", 3)))
	b.Expect(b.current(obj)).To(testenv.HavePath("spec.bad", nil))
}
