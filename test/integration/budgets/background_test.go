package budgets

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// company describes the background handlers of an object.
type company struct {
	// declare declares the handlers, which count their calls.
	declare func(r *kopf.Registry, called *atomic.Int64)
	// calls is the number of calls after which no more writes are expected, and state
	// is the expected object.
	calls int64
	state types.GomegaMatcher
	// creation, restart, and deletion are their expected writes.
	creation, restart, deletion int
	// calledOnce is set for a handler that the next operator does not call.
	calledOnce bool
}

// Rows without numbers expect no writes. No row allows any at rest.
func TestWritesForBackgroundHandlers(t *testing.T) {
	tests := map[string]company{
		"a daemon":                              {declare: waitingDaemon, calls: 1, state: held(), creation: 1, deletion: 1},
		"a daemon that looks at things":         {declare: reconcilingDaemon, calls: 1, state: gomega.And(held(), testenv.HavePath("status.seen", "value")), creation: 2, deletion: 1},
		"a daemon that ends by itself":          {declare: endingDaemon(nil), calls: 1, state: free(), creation: 2, restart: 2},
		"a daemon that ends with a result":      {declare: endingDaemon("done"), calls: 1, state: gomega.And(free(), testenv.HavePath("status.daemon", "done")), creation: 3, restart: 2},
		"a timer without a result":              {declare: timerOf(0), calls: 10, state: free()},
		"a timer whose result is always one":    {declare: timerOf(1), calls: 10, state: testenv.HavePath("status.timer", int64(1)), creation: 1},
		"a timer whose result is one, two, six": {declare: timerOf(1, 2, 6), calls: 10, state: testenv.HavePath("status.timer", int64(6)), creation: 3},
		"an index":                              {declare: anIndex, calls: 1, state: free()},
		"an index and a timer":                  {declare: both(anIndex, timerOf(0)), calls: 10, state: free()},
		"an interval of the object":             {declare: intervalFunc, calls: 10, state: free()},
		// The record of a run and its result are two parts of the object. The next operator has no run to make up for.
		"a schedule, for each run": {declare: yearly(nil), calls: 1, state: scheduled(), creation: 1, calledOnce: true},
		"a schedule with a result": {declare: yearly("done"), calls: 1, state: gomega.And(scheduled(), testenv.HavePath("status.timer", "done")), creation: 2, calledOnce: true},
		"memos":                    {declare: memos, calls: 10, state: free()},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.live(t)
		})
	}
}

// Matchers have state, so each row needs its own.
func held() types.GomegaMatcher { return testenv.HaveFinalizer(settings.DefaultFinalizer) }
func free() types.GomegaMatcher { return gomega.Not(held()) }

// scheduled matches an object with the record of the run of this year.
func scheduled() types.GomegaMatcher {
	return gomega.And(free(), testenv.HaveAnnotation(lastRun, gomega.ContainSubstring(fmt.Sprintf(`"started":"%d-`, time.Now().UTC().Year()))))
}

const lastRun = "kopf.zalando.org/timer.schedule"

// life is an object with an operator that is replaced once.
type life struct {
	*gomega.WithT
	company
	t        *testing.T
	object   *unstructured.Unstructured
	registry *kopf.Registry
	called   *atomic.Int64
	requests *testenv.CountingTransport
	operator *operators.Operator
}

func (c company) live(t *testing.T) {
	l := &life{WithT: gomega.NewWithT(t), company: c, t: t, registry: kopf.NewRegistry(), called: &atomic.Int64{}}
	l.object = testenv.NewObject("KopfExample", cluster.Namespace(t), "one", map[string]any{"field": "value"})
	if c.calledOnce { // it was called last in a former year
		l.object.SetAnnotations(map[string]string{lastRun: `{"started":"2020-01-01T00:00:00+00:00","success":true}`})
	}
	c.declare(l.registry, l.called)
	l.start()
	l.Expect(cluster.Client().Create(t.Context(), l.object.DeepCopy())).To(gomega.Succeed())
	l.expect("creation", c.creation)

	status := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"other":"x"}}`))
	l.Expect(cluster.Client().Status().Patch(t.Context(), l.object.DeepCopy(), status)).To(gomega.Succeed())
	l.expect("rest", 0)

	l.operator.Stop()
	l.start()
	if c.calledOnce {
		l.expectWrites("restart", c.restart)
		l.Expect(l.called.Load()).To(gomega.BeZero())
	} else {
		l.expect("restart", c.restart)
	}

	l.Expect(cluster.Client().Delete(t.Context(), l.object.DeepCopy())).To(gomega.Succeed())
	l.Eventually(cluster.Exists(l.object)).Should(gomega.BeFalse())
	l.expectWrites("deletion", c.deletion)
}

func (l *life) start() {
	config := cluster.Config()
	l.requests = testenv.Count(config)
	l.called.Store(0)
	l.operator = operators.Start(l.t, config, l.object.GetNamespace(), l.registry)
}

// expect waits until all handlers were called often enough since the start of the operator,
// or once more at rest.
func (l *life) expect(stage string, writes int) {
	l.t.Helper()
	before := l.called.Load()
	l.Eventually(l.called.Load).Should(gomega.BeNumerically(">=", l.calls), stage)
	if l.calls > 1 {
		l.Eventually(l.called.Load).Should(gomega.BeNumerically(">=", before+l.calls), stage)
	}
	l.Eventually(cluster.Current(l.object)).Should(l.state, stage)
	l.expectWrites(stage, writes)
}

func (l *life) expectWrites(stage string, writes int) {
	l.t.Helper()
	rest(l.WithT, l.requests)
	l.Expect(l.requests.Snapshot().Writes("kopfexamples")).To(gomega.Equal(writes), "%s: %s", stage, l.requests)
	l.requests.Reset()
}

func waitingDaemon(r *kopf.Registry, called *atomic.Int64) {
	r.Daemon(examples, func(_ context.Context, t *kopf.Task) error {
		called.Add(1)
		<-t.Stopped()
		return nil
	}, kopf.ID("daemon"))
}

// reconcilingDaemon writes only if something differs, and not for its own writes.
func reconcilingDaemon(r *kopf.Registry, called *atomic.Int64) {
	r.Daemon(examples, func(ctx context.Context, t *kopf.Task) error {
		called.Add(1)
		for {
			field, _ := t.Spec().String("field")
			t.Patch().Set(field, "status", "seen")
			if err := t.Write(ctx); err != nil {
				return err
			}
			if t.WaitForChange(time.Hour) {
				return nil
			}
		}
	}, kopf.ID("daemon"), kopf.WakeOn("spec"), kopf.WakeOn("status"), kopf.WakeOn("metadata"), kopf.WatchChildren(kopf.Resource("v1", "configmaps")))
}

func endingDaemon(result any) func(*kopf.Registry, *atomic.Int64) {
	return func(r *kopf.Registry, called *atomic.Int64) {
		r.Daemon(examples, func(_ context.Context, t *kopf.Task) error {
			defer called.Add(1)
			if result != nil {
				t.SetResult(result)
			}
			return nil
		}, kopf.ID("daemon"))
	}
}

// timerOf is a timer with the results. The last one repeats, even with the next operator;
// zero means no result.
func timerOf(results ...int64) func(*kopf.Registry, *atomic.Int64) {
	return func(r *kopf.Registry, called *atomic.Int64) {
		r.Timer(examples, func(_ context.Context, t *kopf.Tick) error {
			if result := results[0]; result != 0 {
				t.SetResult(result)
			}
			if len(results) > 1 {
				results = results[1:]
			}
			called.Add(1)
			return nil
		}, kopf.ID("timer"), kopf.Interval(10*time.Millisecond))
	}
}

func intervalFunc(r *kopf.Registry, called *atomic.Int64) {
	r.Timer(examples, func(context.Context, *kopf.Tick) error {
		called.Add(1)
		return nil
	}, kopf.ID("timer"), kopf.IntervalFunc(func(kopf.Arguments) time.Duration { return 10 * time.Millisecond }))
}

func yearly(result any) func(*kopf.Registry, *atomic.Int64) {
	return func(r *kopf.Registry, called *atomic.Int64) {
		r.Timer(examples, func(_ context.Context, t *kopf.Tick) error {
			called.Add(1)
			if result != nil {
				t.SetResult(result)
			}
			return nil
		}, kopf.ID("timer"), kopf.Schedule("@yearly"))
	}
}

func anIndex(r *kopf.Registry, called *atomic.Int64) {
	kopf.NewIndex(r, examples, func(_ context.Context, i *kopf.Indexed) (map[string]string, error) {
		called.Add(1)
		return map[string]string{i.Name(): i.Namespace()}, nil
	}, kopf.ID("index"))
}

// memos are used by all kinds of handlers that do not write by themselves.
func memos(r *kopf.Registry, called *atomic.Int64) {
	memo := memo.New(nil, func(*atomic.Int64) *atomic.Int64 { return &atomic.Int64{} })
	r.OnEvent(examples, func(_ context.Context, e *kopf.WatchEvent) error {
		memo.Of(e).Add(1)
		return nil
	}, kopf.ID("event"))
	r.Timer(examples, func(_ context.Context, t *kopf.Tick) error {
		memo.Of(t).Add(1)
		called.Add(1)
		return nil
	}, kopf.ID("timer"), kopf.Interval(10*time.Millisecond))
}

func both(a, b func(*kopf.Registry, *atomic.Int64)) func(*kopf.Registry, *atomic.Int64) {
	return func(r *kopf.Registry, called *atomic.Int64) {
		a(r, called)
		b(r, called)
	}
}
