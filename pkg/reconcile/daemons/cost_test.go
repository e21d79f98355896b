package daemons_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/pkg/hierarchy"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/daemons"
	"github.com/kopf-go/kopf/pkg/storage"
)

// discardHost is a Host that prepares calls as the engine does, and discards the rest.
type discardHost struct {
	body   *object.Body
	logger logr.Logger
}

type contextKey struct{}

func (*discardHost) CanCall() bool { return true }

func (q *discardHost) Prepare(ctx context.Context, d *handler.Declaration) (context.Context, handler.CallContext) {
	logger := q.logger.WithValues("object", "default/example", "resource", "kopfexamples.v1.kopf.dev", "handler", d.ID)
	subject := handler.CallContext{Body: q.body, Logger: logger}
	ctx = hierarchy.WithOwner(log.IntoContext(ctx, logger), hierarchy.OwnerOfBody(q.body))
	return context.WithValue(ctx, contextKey{}, q), subject
}

func (q *discardHost) Trace(ctx context.Context, _ *handler.Declaration, _ handler.Attempt) (context.Context, call.EndSpan) {
	return ctx, nil
}
func (q *discardHost) WriteEdit(context.Context, call.Edit) error { return nil }

func (q *discardHost) Write(context.Context, *handler.Declaration, call.Edit) (bool, error) {
	return true, nil
}

func (q *discardHost) Follow(*handler.Declaration, func()) func() { return func() {} }

func (q *discardHost) Children(*handler.Declaration) []*object.Snapshot { return nil }

func (q *discardHost) LastRun(context.Context, *handler.Declaration) (storage.Record, error) {
	return storage.Record{}, nil
}

func (q *discardHost) ReportRun(*handler.Declaration, time.Time) {}

func (q *discardHost) ReportUnscheduled(*handler.Declaration, error, time.Duration) {}

func (q *discardHost) PutRun(context.Context, *handler.Declaration, storage.Record, *patch.Patch) error {
	return nil
}
func (q *discardHost) Report(context.Context, *handler.Declaration, call.Outcome) {}
func (q *discardHost) Measure(*handler.Declaration, call.Outcome)                 {}
func (q *discardHost) Warn(*handler.Declaration, string, string)                  {}
func (q *discardHost) Requeue()                                                   {}
func (q *discardHost) Identity() daemons.Identity                                 { return daemons.Identity{} }

// discardSink is a log sink that keeps values, but writes nothing.
type discardSink struct{ values []any }

func (discardSink) Init(logr.RuntimeInfo)          {}
func (discardSink) Enabled(int) bool               { return true }
func (discardSink) Info(int, string, ...any)       {}
func (discardSink) Error(error, string, ...any)    {}
func (l discardSink) WithName(string) logr.LogSink { return l }
func (l discardSink) WithValues(v ...any) logr.LogSink {
	return discardSink{slices.Concat(l.values, v)}
}

// newDiscardHost returns the host of an example object.
func newDiscardHost() *discardHost {
	return &discardHost{body: object.NewBody(map[string]any{"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": map[string]any{"name": "example", "namespace": "default", "uid": "1"}, "spec": map[string]any{"size": int64(1)}}), logger: logr.New(discardSink{})}
}

// BenchmarkTimerCalls measures a timer call with an empty handler, from one firing of
// the timer to the next. It must stay far below 40 µs, which is 4 % of a core at 1,000
// calls per second.
func BenchmarkTimerCalls(b *testing.B) {
	b.ReportAllocs()
	supervisor := daemons.New(daemons.Options{})
	defer supervisor.Stop(b.Context())
	done, left := make(chan struct{}), b.N
	d, err := handler.Timer(selector.New("kopfexamples"), handlertest.Function(func(context.Context, *handler.Call) error {
		if left--; left == 0 {
			close(done)
		}
		return nil
	}), handler.ID("a"), handler.Interval(1))
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	supervisor.NewGroup(newDiscardHost()).Sync([]*handler.Declaration{d}, false)
	<-done
}

// BenchmarkSync measures a pass over an unchanged object with two handlers.
func BenchmarkSync(b *testing.B) {
	b.ReportAllocs()
	supervisor := daemons.New(daemons.Options{})
	defer supervisor.Stop(b.Context())
	wanted := waitingHandlers(b)
	group := supervisor.NewGroup(newDiscardHost())
	for b.Loop() {
		group.Sync(wanted, false)
	}
}

// waitingHandlers returns a timer and a daemon that only wait.
func waitingHandlers(tb testing.TB) []*handler.Declaration {
	tb.Helper()
	resource := selector.New("kopfexamples")
	timer, err := handler.Timer(resource, handlertest.Function(func(context.Context, *handler.Call) error { return nil }),
		handler.ID("timer"), handler.Interval(time.Hour))
	if err != nil {
		tb.Fatal(err)
	}
	daemon, err := handler.Daemon(resource, handlertest.Function(func(_ context.Context, t *handler.Call) error {
		var frame [80]byte // besides the 80 bytes that this function takes without it
		for !t.Wait(time.Hour) {
			t.Context.Logger.Info("An hour has passed.", "frame", frame[:])
		}
		return nil
	}), handler.ID("daemon"))
	if err != nil {
		tb.Fatal(err)
	}
	return []*handler.Declaration{timer, daemon}
}
