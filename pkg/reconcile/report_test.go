package reconcile

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/plan"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/write"
	"github.com/kopf-go/kopf/pkg/storage"
)

// witness records the logs and events of the operator.
type witness struct{ log, events []string }

func (w *witness) Post(about corev1.ObjectReference, eventType, reason, message string) {
	w.events = append(w.events, fmt.Sprintf("%s/%s %s %s: %s", about.Kind, about.Name, eventType, reason, message))
}

// witnessed returns a pass that can only log and post events.
func witnessed(t *testing.T) (*pass, *witness) {
	w := &witness{}
	r := atRest(t, 1)
	r.engine.Poster = w
	p := r.newPass(r.engine.resources.get(kex.String()), r.keys[0])
	p.report.Log = funcr.New(func(_, args string) { w.log = append(w.log, args) }, funcr.Options{Verbosity: 1})
	return p, w
}

func TestSupersededCauseIsLogged(t *testing.T) {
	p, w := witnessed(t)
	c := &cycle{Plan: &plan.Plan{Cause: handler.Cause{Reason: cause.Delete}, Cycle: &record.Cycle{}}}
	c.Cycle.Progress = call.NewProgress(func(string) *storage.Record { return &storage.Record{Purpose: cause.Create, Started: time.Now()} })
	c.Cycle.Progress.Load("a")
	c.Cycle.Progress.Load("b")
	c.Handlers = registry.Handlers{{ID: "c"}}
	p.announce(c)
	if got := strings.Join(w.log, "\n"); !strings.Contains(got, "The creation is superseded by the deletion.") || !strings.Contains(got, `"handlers"=2`) ||
		!strings.Contains(got, "The deletion is in progress.") {
		t.Errorf("got %s", got)
	}
}

func TestChangeWithoutHandlersIsLogged(t *testing.T) {
	p, w := witnessed(t)
	c := &cycle{Plan: &plan.Plan{Cause: handler.Cause{Reason: cause.Update}, Cycle: &record.Cycle{}}}
	c.Cycle.Progress = call.NewProgress(func(string) *storage.Record { return nil })
	p.announce(c)
	if got := strings.Join(w.log, "\n"); !strings.Contains(got, "No handler matches this update") {
		t.Errorf("got %s", got)
	}
}

func TestResumptionWithoutHandlersIsNotLogged(t *testing.T) {
	p, w := witnessed(t)
	c := &cycle{Plan: &plan.Plan{Cause: handler.Cause{Reason: cause.Resume}, Cycle: &record.Cycle{}}}
	c.Cycle.Progress = call.NewProgress(func(string) *storage.Record { return nil })
	p.announce(c)
	if len(w.log) > 0 {
		t.Errorf("got %q", w.log)
	}
}

func TestOutageIsReportedAsAnEventOnce(t *testing.T) {
	p, w := witnessed(t)
	for range 5 {
		p.recordFailure(errors.New("no connection"))
	}
	want := "KopfExample/example-00000 Warning ReconcileError: The object cannot be handled now; it will be retried: no connection"
	if len(w.log) != 5 || strings.Join(w.events, "\n") != want {
		t.Errorf("got %q, %q", w.log, w.events)
	}
}

func TestSuccessIsReportedWhenItsEditIsWritten(t *testing.T) {
	p, w := witnessed(t)
	if _, err := p.session.Refresh(t.Context(), p.resource.Cached(p.key.NamespacedName)); err != nil {
		t.Fatal(err)
	}
	c := &cycle{Plan: &plan.Plan{Cycle: &record.Cycle{Progress: call.NewProgress(func(string) *storage.Record { return nil })}}}
	for _, id := range []string{"written", "rejected"} {
		c.Cycle.Progress.Load(id)
		p.afterAttempt(c, &handler.Declaration{ID: id}, call.Outcome{Final: true, HasEdit: true})
	}
	if len(w.log) > 0 || len(w.events) > 0 {
		t.Errorf("before anything is written: %q %q", w.log, w.events)
	}
	c.Cycle.FailHandler("rejected", errors.New("no such field"))
	p.finishCycle(write.Outcome{Cycle: c.Cycle})
	p.finishCycle(write.Outcome{Cycle: c.Cycle}) // reports nothing more
	log, events := strings.Join(w.log, "\n"), strings.Join(w.events, "\n")
	if strings.Count(log, "succeeded") != 1 || !strings.Contains(events, "HandlerSucceeded: Handler written succeeded.") || strings.Contains(events, "rejected") {
		t.Errorf("got %s, %s", log, events)
	}
}

// An upgrade has renamed a handler: its progress stays on the objects, and nothing reads it.
func TestProgressOfUndeclaredHandlersIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, w := atRest(t, 3), &witness{}
		e.engine.undeclared.Logger = funcr.New(func(_, args string) { w.log = append(w.log, args) }, funcr.Options{})
		r := e.engine.resources.get(kex.String())
		for _, key := range e.keys[:2] {
			body := r.Cached(key.NamespacedName).Body().Raw()
			body = patch.ApplyMerge(body, m{"metadata": m{"annotations": m{
				"kopf.zalando.org/renamed": `{"started":"2024-02-14T16:58:25.396364+00:00","purpose":"update"}`,
			}}})
			text, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			snapshot, err := object.ParseSnapshot(text)
			if err != nil || e.cache.Update(snapshot) != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			for _, key := range e.keys {
				makePass(t, e, key)
				e.engine.objects.of(key).reconciledVersion = ""
				makePass(t, e, key)
			}
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(w.log) != 1 || !strings.HasSuffix(w.log[0], `"resource"="kopfexamples.v1.kopf.dev" "record"="renamed" "objects"=2`) {
			t.Errorf("got %q", w.log)
		}
	})
}
