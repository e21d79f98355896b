package daemons_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/daemons"
	"github.com/kopf-go/kopf/pkg/storage"
)

// world is an engine without a cluster, with one object. It makes a pass over the
// object whenever one is requested.
type world struct {
	t          *testing.T
	supervisor *daemons.Supervisor
	group      *daemons.Group
	began      time.Time
	// write is how the API server answers to edits; nil accepts them at once. Set it with setWrite while the group runs.
	write func(ctx context.Context) error

	passes sync.Mutex
	wanted []*handler.Declaration

	mu   sync.Mutex
	log  []string // what has happened, with the seconds since the start
	runs map[string]storage.Record
	wake func() // of the last daemon that follows something
	// refuses is set while no call may begin.
	refuses bool
	// admitted, if it is not 0, is how many questions there are until one is answered with no; refuses decides the others.
	admitted int
}

var _ daemons.Host = (*world)(nil)

// inBubble runs a test in a synctest bubble.
func inBubble(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, began: time.Now(), runs: map[string]storage.Record{}, supervisor: daemons.New(daemons.Options{})}
		w.group = w.supervisor.NewGroup(w)
		test(t, w)
		w.exit(0)
		time.Sleep(time.Hour) // until the abandoned handlers have returned, too
	})
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf("%gs ", time.Since(w.began).Seconds())+fmt.Sprintf(format, args...))
}

func (w *world) CanCall() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.admitted > 0 {
		w.admitted--
		return w.admitted > 0
	}
	return !w.refuses
}

func (w *world) setRefuses(refuses bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refuses = refuses
}

func (w *world) Prepare(ctx context.Context, _ *handler.Declaration) (context.Context, handler.CallContext) {
	return ctx, handler.CallContext{Body: object.NewBody(map[string]any{"spec": map[string]any{"delay": int64(7)}})}
}

func (w *world) Trace(ctx context.Context, _ *handler.Declaration, _ handler.Attempt) (context.Context, call.EndSpan) {
	return ctx, nil
}

func (w *world) setWrite(write func(ctx context.Context) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.write = write
}

func (w *world) WriteEdit(ctx context.Context, edit call.Edit) error {
	w.mu.Lock()
	write := w.write
	w.mu.Unlock()
	if write != nil {
		if err := write(ctx); err != nil {
			return err
		}
	}
	w.note("%s: wrote %v", edit.ID, edit.Result)
	return nil
}

func (w *world) Write(ctx context.Context, _ *handler.Declaration, edit call.Edit) (bool, error) {
	return ctx.Err() == nil, w.WriteEdit(ctx, edit)
}

// Follow has changes by wake.
func (w *world) Follow(d *handler.Declaration, wake func()) func() {
	w.note("%s: follows", d.ID)
	w.mu.Lock()
	w.wake = wake
	w.mu.Unlock()
	return func() { w.note("%s: does not follow anymore", d.ID) }
}

func (w *world) Children(*handler.Declaration) []*object.Snapshot { return nil }

// LastRun returns what PutRun has put.
func (w *world) LastRun(_ context.Context, d *handler.Declaration) (storage.Record, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last, ok := w.runs[d.ID]; ok {
		return last, nil
	}
	return storage.Record{Started: w.began}, nil
}

func (w *world) ReportRun(d *handler.Declaration, run time.Time) {
	w.note("%s: run %g succeeded", d.ID, run.Sub(w.began).Seconds())
}

func (w *world) ReportUnscheduled(d *handler.Declaration, err error, delay time.Duration) {
	w.note("%s: unscheduled for %s, %v", d.ID, delay, err)
}

func (w *world) PutRun(_ context.Context, d *handler.Declaration, run storage.Record, _ *patch.Patch) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs[d.ID] = run
	return nil
}

func (w *world) Report(_ context.Context, d *handler.Declaration, o call.Outcome) {
	switch {
	case o.Ignored != nil:
		w.note("%s: ignored %v", d.ID, o.Ignored)
	case o.Err != nil && o.Final:
		w.note("%s: failed, %v", d.ID, o.Err)
	case o.Err != nil:
		w.note("%s: again in %s, %v", d.ID, o.Delay, o.Err)
	default:
		w.note("%s: ended", d.ID)
	}
}

func (w *world) Measure(*handler.Declaration, call.Outcome) {}

func (w *world) Warn(d *handler.Declaration, reason, _ string) { w.note("%s: %s", d.ID, reason) }

// Requeue makes the requested pass.
func (w *world) Requeue() {
	w.note("pass")
	w.pass(false)
}

func (w *world) Identity() daemons.Identity { return daemons.Identity{UID: "the only one"} }

func (w *world) pass(changed bool) {
	w.passes.Lock()
	defer w.passes.Unlock()
	w.group.Sync(w.wanted, changed)
}

// match makes a pass over the object, which only these handlers match now.
func (w *world) match(handlers ...*handler.Declaration) {
	w.passes.Lock()
	w.wanted = handlers
	w.passes.Unlock()
	w.pass(false)
}

// until lets time pass until the given second, with everything that happens by then.
func (w *world) until(seconds float64) {
	time.Sleep(time.Until(w.began.Add(time.Duration(seconds * float64(time.Second)))))
	synctest.Wait()
}

// exit stops the operator with a grace period.
func (w *world) exit(timeout time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	w.supervisor.Stop(ctx)
}

func (w *world) expect(want ...string) {
	w.t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.log, want) {
		w.t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(w.log, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// expectLines expects what has happened except for the writes and the successes of runs.
func (w *world) expectLines(want ...string) {
	w.t.Helper()
	w.mu.Lock()
	w.log = slices.DeleteFunc(w.log, func(line string) bool {
		return strings.Contains(line, ": wrote ") || strings.HasSuffix(line, " succeeded")
	})
	w.mu.Unlock()
	w.expect(want...)
}

func (w *world) daemon(id string, fn func(context.Context, *handler.Call) error, options ...handler.BackgroundOption) *handler.Declaration {
	w.t.Helper()
	d, err := handler.Daemon(selector.New("kopfexamples"), handlertest.Function(fn), append([]handler.BackgroundOption{handler.ID(id)}, options...)...)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

func (w *world) timer(id string, fn func(context.Context, *handler.Call) error, options ...handler.BackgroundOption) *handler.Declaration {
	w.t.Helper()
	d, err := handler.Timer(selector.New("kopfexamples"), handlertest.Function(fn), append([]handler.BackgroundOption{handler.ID(id)}, options...)...)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// untilStopped is a daemon that checks something every ten seconds until it must stop.
func (w *world) untilStopped(_ context.Context, t *handler.Call) error {
	w.note("started")
	for !t.Wait(10 * time.Second) {
		w.note("checked")
	}
	w.note("stopped: %s", t.StopReason())
	return nil
}

// untilCanceled is a daemon that runs until its context is canceled.
func (w *world) untilCanceled(ctx context.Context, t *handler.Call) error {
	w.note("started")
	<-ctx.Done()
	w.note("canceled: %s", t.StopReason())
	return ctx.Err()
}

// ignoringStops returns a daemon that returns after some time, whatever it is asked.
func (w *world) ignoringStops(d time.Duration) func(context.Context, *handler.Call) error {
	return func(_ context.Context, t *handler.Call) error {
		w.note("started")
		time.Sleep(d)
		w.note("returned: %s", t.StopReason())
		return nil
	}
}
