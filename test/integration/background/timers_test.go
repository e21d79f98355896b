package background

import (
	"context"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// counting is a timer whose result changes every time.
func (b *bench) counting(id string) func(context.Context, *kopf.Tick) error {
	return b.ticking(id, func(_ context.Context, tick *kopf.Tick) error {
		tick.SetResult(b.runs.count(id + " " + tick.Name())())
		return nil
	})
}

func TestTimersDoNotHoldTheirObject(t *testing.T) {
	t.Parallel()
	b, g := newBench(t), newGate()
	defer g.open()
	b.Timer(examples, b.ticking("waits", func(context.Context, *kopf.Tick) error { return nil }), kopf.ID("waits"), kopf.InitialDelay(long))
	b.Timer(examples, b.ticking("runs", func(context.Context, *kopf.Tick) error { g.pass(); return nil }), kopf.ID("runs"))
	b.Timer(examples, b.ticking("again", func(context.Context, *kopf.Tick) error { return nil }), kopf.ID("again"), kopf.Interval(brief))
	b.start()
	obj := b.create("one", nil)
	b.arrived(g)
	b.Eventually(b.runs.count("again one")).Should(gomega.BeNumerically(">", 2))
	b.expectRest()
	b.Expect(b.current(obj).GetFinalizers()).To(gomega.BeEmpty())
	b.expectWrites(0)
	b.remove(obj)
	b.expectGoneAtOnce(obj)
	g.open()
	b.Eventually(b.runs.running("")).Should(gomega.BeZero())
	b.expectRest()
	count := b.runs.count("again one")()
	b.Consistently(b.runs.count("again one"), quiet).Should(gomega.Equal(count))
	b.expectWrites(0)
}

func TestTimerIsCalledWhileItsObjectMatches(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Timer(examples, b.counting("fn"), kopf.ID("fn"), kopf.Interval(brief), kopf.Labels(map[string]kopf.Matcher{"timed": kopf.Equal("yes")}))
	b.start()
	obj, other := b.labelled("one", "timed", "yes"), b.labelled("two", "timed", "yes")
	b.Eventually(b.runs.count("fn one")).Should(gomega.BeNumerically(">", 2))
	b.patch(obj, `{"metadata":{"labels":{"timed":"no"}}}`)
	stopped := func() bool { // no call during several calls of the other timer
		before, others := b.runs.count("fn one")(), b.runs.count("fn two")()
		b.Eventually(b.runs.count("fn two")).Should(gomega.BeNumerically(">", others+5))
		return b.runs.count("fn one")() == before
	}
	b.Eventually(stopped).Should(gomega.BeTrue())
	before := b.runs.count("fn one")()
	b.patch(obj, `{"metadata":{"labels":{"timed":"yes"}}}`)
	b.Eventually(b.runs.count("fn one")).Should(gomega.BeNumerically(">", before+2))
	b.Eventually(cluster.Current(obj)).Should(testenv.HavePath("status.fn", gomega.BeNumerically(">", before)))
	b.Expect(b.runs.overlapping()).To(gomega.BeEmpty())
	b.remove(other)
	b.expectGoneAtOnce(other)
}

// changes are changes of an idle object, with the resulting number of calls of an idle
// timer: 1 or 2.
var changes = map[string]struct {
	change func(b *bench, obj *unstructured.Unstructured)
	calls  int
}{
	"no change":            {func(*bench, *unstructured.Unstructured) {}, 1},
	"a change of the spec": {func(b *bench, obj *unstructured.Unstructured) { b.patch(obj, `{"spec":{"field":"2"}}`) }, 2},
	"a change of a label":  {func(b *bench, obj *unstructured.Unstructured) { b.patch(obj, `{"metadata":{"labels":{"a":"2"}}}`) }, 2},
	"a change of an annotation": {
		func(b *bench, obj *unstructured.Unstructured) { b.patch(obj, `{"metadata":{"annotations":{"a":"2"}}}`) }, 2,
	},
	"a change of a watched status field": {
		func(b *bench, obj *unstructured.Unstructured) { b.patchStatus(obj, `{"status":{"handled":"2"}}`) }, 2,
	},
	"not a change of another status field": {
		func(b *bench, obj *unstructured.Unstructured) { b.patchStatus(obj, `{"status":{"other":"2"}}`) }, 1,
	},
	"not a finalizer": {
		func(b *bench, obj *unstructured.Unstructured) {
			b.patch(obj, `{"metadata":{"finalizers":["example.com/other"]}}`)
		}, 1,
	},
}

// Only essential changes reset the idle time, and the results of the object's timers are not
// essential.
func TestEssentialChangesPostponeIdleTimers(t *testing.T) {
	t.Parallel()
	for name, test := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.Timer(examples, b.counting("fn"), kopf.ID("fn"), kopf.Idle(quiet))
			b.Timer(examples, b.counting("busy"), kopf.ID("busy"), kopf.Interval(brief)) // its results do not reset the idle time
			b.OnField(examples, "status.handled", func(_ context.Context, c *kopf.Change) error { c.SetResult("seen"); return nil }, kopf.ID("field"))
			b.start()
			obj := b.create("one", map[string]any{"field": "1"})
			b.Eventually(cluster.Current(obj)).Should(testenv.HavePath("status.fn", int64(1)))
			test.change(b, obj)
			b.Eventually(b.runs.count("fn one")).Should(gomega.Equal(test.calls))
			b.Consistently(b.runs.count("fn one"), 2*quiet).Should(gomega.Equal(test.calls))
		})
	}
}

// observing records the changes that the daemon sees.
func (b *bench) observing(_ context.Context, task *kopf.Task) error {
	for seen := ""; !task.Wait(brief); {
		field, _ := task.Spec().String("field")
		phase, _ := task.Status().String("phase")
		if now := field + " " + task.Labels()["label"] + " " + phase; now != seen {
			seen = now
			b.calls.Note("%s", now)
		}
	}
	return nil
}

func TestArgumentsOfDaemonsAreLive(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Daemon(examples, b.observing, kopf.ID("watch"))
	b.Timer(examples, func(_ context.Context, tick *kopf.Tick) error {
		field, _ := tick.Spec().String("field")
		tick.SetResult(field)
		return nil
	}, kopf.ID("timer"), kopf.Interval(brief))
	b.start()
	obj := b.create("one", map[string]any{"field": "1"})
	b.Eventually(b.calls.All).Should(gomega.HaveExactElements("1  "))
	b.patch(obj, `{"spec":{"field":"2"}}`)
	b.Eventually(b.calls.All).Should(gomega.HaveExactElements("1  ", "2  "))
	b.patch(obj, `{"metadata":{"labels":{"label":"new"}}}`)
	b.Eventually(b.calls.All).Should(gomega.HaveExactElements("1  ", "2  ", "2 new "))
	b.patchStatus(obj, `{"status":{"phase":"Running"}}`)
	b.Eventually(b.calls.All).Should(gomega.HaveExactElements("1  ", "2  ", "2 new ", "2 new Running"))
	b.Eventually(cluster.Current(obj)).Should(testenv.HavePath("status.timer", "2"))
}

// Nothing waits for the call, but its context ends with the object.
func TestRunningTimerLearnsThatItsObjectIsLost(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		lose func(b *bench, obj *unstructured.Unstructured)
		want string
	}{
		"the object is deleted": {
			func(b *bench, obj *unstructured.Unstructured) { b.remove(obj); b.expectGone(obj) },
			"deleted|signaled|canceled",
		},
		"the object no longer matches": {
			func(b *bench, obj *unstructured.Unstructured) { b.patch(obj, `{"metadata":{"labels":{"tier":null}}}`) },
			"mismatch|signaled|canceled",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.Timer(examples, func(ctx context.Context, tick *kopf.Tick) error {
				b.calls.Note("called")
				<-ctx.Done()
				<-tick.Stopped()
				b.calls.Note("%s", tick.StopReason())
				return ctx.Err()
			}, kopf.ID("timer"), kopf.Interval(long), kopf.Labels(map[string]kopf.Matcher{"tier": kopf.Present()}))
			b.start()
			obj := b.labelled("one", "tier", "web")
			b.Eventually(b.calls.All).Should(gomega.Equal([]string{"called"}))
			test.lose(b, obj)
			b.Eventually(b.calls.All).Should(gomega.Equal([]string{"called", test.want}))
		})
	}
}
