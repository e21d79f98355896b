package daemons_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-go/kopf/pkg/hierarchy"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/daemons"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
)

// quiet is a host that prepares calls as an engine does, and writes nothing.
type quiet struct {
	body   *object.Body
	logger logr.Logger
}

type aboutKey struct{}

func (q *quiet) Prepare(ctx context.Context, d *handler.Declaration) (context.Context, handler.CallContext) {
	logger := q.logger.WithValues("object", "default/example", "resource", "kopfexamples.v1.kopf.dev", "handler", d.ID)
	subject := handler.CallContext{Body: q.body, Logger: logger}
	ctx = hierarchy.WithOwner(log.IntoContext(ctx, logger), hierarchy.OwnerOfBody(q.body))
	return context.WithValue(ctx, aboutKey{}, q), subject
}
func (q *quiet) WriteEdit(context.Context, execution.Edit) error                 { return nil }
func (q *quiet) Report(context.Context, *handler.Declaration, execution.Outcome) {}
func (q *quiet) Measure(*handler.Declaration, execution.Outcome)                 {}
func (q *quiet) Warn(*handler.Declaration, string, string)                       {}
func (q *quiet) Requeue()                                                        {}

// lazy is a sink that writes nothing, and keeps its values as they come.
type lazy struct{ values []any }

func (lazy) Init(logr.RuntimeInfo)              {}
func (lazy) Enabled(int) bool                   { return true }
func (lazy) Info(int, string, ...any)           {}
func (lazy) Error(error, string, ...any)        {}
func (l lazy) WithName(string) logr.LogSink     { return l }
func (l lazy) WithValues(v ...any) logr.LogSink { return lazy{slices.Concat(l.values, v)} }

func newQuiet() *quiet {
	return &quiet{body: object.NewBody(map[string]any{"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": map[string]any{"name": "example", "namespace": "default", "uid": "1"}, "spec": map[string]any{"size": int64(1)}}), logger: logr.New(lazy{})}
}

// BenchmarkTimerCalls is the price of a timer call with an empty handler: from
// the alarm to the next one. It is to be far under 40 µs, which is 4 % of a core
// at 1,000 calls a second.
func BenchmarkTimerCalls(b *testing.B) {
	b.ReportAllocs()
	supervisor := daemons.New(daemons.Options{})
	defer supervisor.Stop(b.Context())
	done, left := make(chan struct{}), b.N
	d, err := handler.Timer(selector.New("kopfexamples"), handler.Function{Timer: func(context.Context, *handler.Tick) error {
		if left--; left == 0 {
			close(done)
		}
		return nil
	}}, handler.ID("a"), handler.Interval(1))
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	supervisor.NewGroup(newQuiet()).Sync([]*handler.Declaration{d}, false)
	<-done
}

// BenchmarkMatches is the price of a pass over an object that has not changed,
// with two handlers.
func BenchmarkMatches(b *testing.B) {
	b.ReportAllocs()
	supervisor := daemons.New(daemons.Options{})
	defer supervisor.Stop(b.Context())
	wanted := waitingHandlers(b)
	group := supervisor.NewGroup(newQuiet())
	for b.Loop() {
		group.Sync(wanted, false)
	}
}

// waitingHandlers are a timer and a daemon that only wait.
func waitingHandlers(tb testing.TB) []*handler.Declaration {
	tb.Helper()
	resource := selector.New("kopfexamples")
	timer, err := handler.Timer(resource, handler.Function{Timer: func(context.Context, *handler.Tick) error { return nil }},
		handler.ID("timer"), handler.Interval(time.Hour))
	if err != nil {
		tb.Fatal(err)
	}
	daemon, err := handler.Daemon(resource, handler.Function{Daemon: func(_ context.Context, t *handler.Task) error {
		for !t.Wait(time.Hour) {
			t.Logger().Info("An hour has passed.")
		}
		return nil
	}}, handler.ID("daemon"))
	if err != nil {
		tb.Fatal(err)
	}
	return []*handler.Declaration{timer, daemon}
}
