package call_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/lifecycles"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/storage"
)

// world is an engine without a cluster: it makes passes over one object, and keeps
// the records that they store. Every pass starts from the stored records, as after a
// crash.
type world struct {
	t         *testing.T
	reason    cause.Reason
	lifecycle lifecycles.Lifecycle
	before    func(ctx context.Context) error
	backoff   backoff.Backoff
	stored    map[string]*storage.Record
	began     time.Time
	body      map[string]any
	// log lists what has happened, with the seconds since the start.
	log []string
}

// inBubble runs a test in a synctest bubble.
func inBubble(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, &world{t: t, reason: cause.Create, lifecycle: lifecycles.AllAtOnce, backoff: backoff.Constant(time.Minute), stored: map[string]*storage.Record{}, began: time.Now()})
	})
}

func (w *world) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%ds ", int(time.Since(w.began).Seconds()))+fmt.Sprintf(format, args...))
}

// handler declares a creation handler.
func (w *world) handler(id string, fn func(context.Context, *handler.Call) error, options ...handler.ChangeOption) *handler.Declaration {
	w.t.Helper()
	d, err := handler.Create(selector.New("kopfexamples"), handlertest.Function(fn), append([]handler.ChangeOption{handler.ID(id)}, options...)...)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// begin returns the runner and the progress of a new pass.
func (w *world) begin(handlers registry.Handlers) (*call.Runner, *call.Progress) {
	progress := call.NewProgress(func(id string) *storage.Record { return w.stored[id] })
	for _, d := range handlers {
		progress.Include(d.ID, w.reason, false)
	}
	runner := &call.Runner{
		Cause: &handler.Cause{Reason: w.reason, CallContext: handler.CallContext{Body: object.NewBody(w.body)}}, Progress: progress,
		Lifecycle: w.lifecycle, Backoff: w.backoff, Slots: call.NewSlots(1, func(object.Key) {}), Leave: func() {}, Enter: func() {},
		Interrupted: func() error { return nil },
		BeforeAttempt: func(ctx context.Context) error {
			if w.before != nil {
				return w.before(ctx)
			}
			return nil
		},
		Prepare: func(ctx context.Context, _ *handler.Declaration) (context.Context, handler.CallContext, call.EndSpan) {
			return ctx, handler.CallContext{Body: object.NewBody(w.body)}, nil
		},
		AfterAttempt: func(_ context.Context, d *handler.Declaration, o call.Outcome) {
			w.note("%s: %s", d.ID, describe(o))
		},
		OutOfOrder: func(d *handler.Declaration, why string) { w.note("%s: skipped, %s", d.ID, why) },
	}
	return runner, progress
}

// describe returns an outcome as it appears in the log.
func describe(o call.Outcome) string {
	switch {
	case o.Ignored != nil:
		return "ignored " + o.Ignored.Error()
	case o.Succeeded():
		return "succeeded"
	case o.Final:
		return "failed, " + o.Err.Error()
	default:
		return "again in " + o.Delay.String() + ", " + o.Err.Error()
	}
}

// pass makes one pass, and stores the records.
func (w *world) pass(ctx context.Context, handlers ...*handler.Declaration) (*call.Runner, *call.Progress, error) {
	runner, progress := w.begin(handlers)
	err := runner.Run(ctx, handlers)
	w.store(progress)
	return runner, progress, err
}

func (w *world) store(progress *call.Progress) {
	for _, id := range progress.Dirty() {
		record := progress.Load(id).Record
		w.stored[id] = &record
	}
	progress.MarkStored()
}

// cycle makes passes until all handlers have finished, and waits in between for as
// long as the progress says.
func (w *world) cycle(handlers ...*handler.Declaration) *call.Progress {
	w.t.Helper()
	for range 10 {
		_, progress, err := w.pass(w.t.Context(), handlers...)
		if err != nil {
			w.t.Fatal(err)
		}
		delay, waiting := progress.NextDelay()
		if waiting == progress.Done() {
			w.t.Fatalf("done: %v, waiting: %v", progress.Done(), waiting)
		}
		if !waiting {
			return progress
		}
		time.Sleep(delay)
	}
	w.t.Fatalf("the cycle does not end:\n%s", lines(w.log))
	return nil
}

func (w *world) expect(want ...string) {
	w.t.Helper()
	if !slices.Equal(w.log, want) {
		w.t.Errorf("got\n%s\nwant\n%s", lines(w.log), lines(want))
	}
}

func lines(list []string) string {
	text := ""
	for _, line := range list {
		text += "\t" + line + "\n"
	}
	return text
}

func (w *world) storedIDs() []string { return slices.Sorted(maps.Keys(w.stored)) }
