package reconcile

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
	"github.com/kopf-go/kopf/pkg/storage"
)

// witness takes what the operator logs and posts.
type witness struct{ log, events []string }

func (w *witness) Post(about corev1.ObjectReference, eventType, reason, message string) {
	w.events = append(w.events, fmt.Sprintf("%s/%s %s %s: %s", about.Kind, about.Name, eventType, reason, message))
}

// witnessed is a pass that can only log and post.
func witnessed() (*pass, *witness) {
	w := &witness{}
	logger := funcr.New(func(_, args string) { w.log = append(w.log, args) }, funcr.Options{Verbosity: 1})
	body := object.NewBody(m{"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": m{"name": "one", "namespace": "ns", "uid": "u-1"}})
	return &pass{Engine: &Engine{Config: Config{Poster: w}}, memory: &memory{}, log: logger, body: body}, w
}

func TestASuccessIsReportedWhenItsResultIsWritten(t *testing.T) {
	p, w := witnessed()
	c := &cycle{progress: execution.NewProgress(func(string) *storage.Record { return nil })}
	for _, id := range []string{"written", "refused"} {
		c.progress.Load(id)
		p.report(c, &handler.Declaration{ID: id}, execution.Outcome{Final: true, HasEdit: true})
	}
	if len(w.log) > 0 || len(w.events) > 0 {
		t.Errorf("before anything is written: %q %q", w.log, w.events)
	}
	p.blame(&intent{cycle: c}, execution.Edit{ID: "refused"}, errors.New("no such field"))
	p.written(c)
	p.written(c) // has nothing to add
	log, events := strings.Join(w.log, "\n"), strings.Join(w.events, "\n")
	if strings.Count(log, "succeeded") != 1 || !strings.Contains(events, "HandlerSucceeded: Handler written succeeded.") {
		t.Errorf("got %s, %s", log, events)
	}
	if strings.Contains(events, "Handler refused succeeded") || !strings.Contains(events, "WriteRejected: Handler refused failed") {
		t.Errorf("got %s", events)
	}
}

func TestOutcomesAreReported(t *testing.T) {
	failure := errors.New("no network")
	tests := map[string]struct {
		outcome execution.Outcome
		log     []string // parts of the line
		event   string
	}{
		"a success": {
			execution.Outcome{Final: true},
			[]string{"The handler succeeded.", `"handler"="fn"`},
			"KopfExample/one Normal HandlerSucceeded: Handler fn succeeded.",
		},
		"an error that is ignored": {
			execution.Outcome{Final: true, Ignored: failure}, []string{"The handler failed; this is ignored.", "no network"}, "",
		},
		"an error that is retried": {
			execution.Outcome{Err: failure, Delay: time.Minute},
			[]string{"The handler failed and will be retried.", "no network", `"delay"="1m0s"`},
			"KopfExample/one Warning HandlerRetrying: Handler fn failed and will be retried: no network",
		},
		"an error for good": {
			execution.Outcome{Final: true, Err: failure},
			[]string{"The handler failed permanently.", "no network"},
			"KopfExample/one Warning HandlerFailed: Handler fn failed permanently: no network",
		},
		"a panic, with its place": {
			execution.Outcome{Err: &handler.PanicError{Value: "boom", Stack: []byte("main.go:7")}},
			[]string{"panic: boom", `"stack"="main.go:7"`},
			"KopfExample/one Warning HandlerRetrying: Handler fn failed and will be retried: panic: boom",
		},
		"a wait for sub-handlers": {
			execution.Outcome{Err: &handler.SubhandlersError{}, Delay: time.Second}, []string{"The handler waits for its sub-handlers."}, "",
		},
		"a wait for sub-handlers that is too long": {
			execution.Outcome{Final: true, Err: &handler.TimeoutError{ID: "fn", Timeout: time.Second, Err: &handler.SubhandlersError{}}},
			[]string{"The handler failed permanently."},
			"KopfExample/one Warning HandlerFailed: Handler fn failed permanently: handler fn has timed out after 1s: some sub-handlers are not done yet",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, w := witnessed()
			p.report(&cycle{}, &handler.Declaration{ID: "fn"}, test.outcome)
			if len(w.log) != 1 || strings.Join(w.events, "") != test.event {
				t.Fatalf("got %q, %q", w.log, w.events)
			}
			for _, want := range test.log {
				if !strings.Contains(w.log[0], want) {
					t.Errorf("got %s, want %s in it", w.log[0], want)
				}
			}
		})
	}
}

func TestWhatIsGivenUpForAnotherReasonIsSaid(t *testing.T) {
	p, w := witnessed()
	c := &cycle{Cause: handler.Cause{Reason: cause.Delete}}
	c.progress = execution.NewProgress(func(string) *storage.Record { return &storage.Record{Purpose: cause.Create, Started: time.Now()} })
	c.progress.Load("a")
	c.progress.Load("b")
	c.handlers = registry.Handlers{{ID: "c"}}
	p.announce(c)
	if got := strings.Join(w.log, "\n"); !strings.Contains(got, "The creation is superseded by the deletion.") || !strings.Contains(got, `"handlers"=2`) ||
		!strings.Contains(got, "The deletion is in progress.") {
		t.Errorf("got %s", got)
	}
}

func TestAChangeWithoutHandlersIsSaidToBeOne(t *testing.T) {
	p, w := witnessed()
	c := &cycle{Cause: handler.Cause{Reason: cause.Update}}
	c.progress = execution.NewProgress(func(string) *storage.Record { return nil })
	p.announce(c)
	if got := strings.Join(w.log, "\n"); !strings.Contains(got, "No handler is for this update") {
		t.Errorf("got %s", got)
	}
}

func TestAnOutageIsAnEventOnce(t *testing.T) {
	p, w := witnessed()
	for range 5 {
		p.pause(errors.New("no connection"))
	}
	want := "KopfExample/one Warning ReconcileError: The object cannot be handled now; it will be retried: no connection"
	if len(w.log) != 5 || strings.Join(w.events, "\n") != want {
		t.Errorf("got %q, %q", w.log, w.events)
	}
}

func TestNothingIsPostedWherePostingIsDisabled(t *testing.T) {
	p, w := witnessed()
	p.Settings.Posting.Disabled = true
	p.post(p.body, normal, "A", "b")
	p.Settings.Posting.Disabled, p.Poster = false, nil
	p.post(p.body, normal, "A", "b")
	if len(w.events) != 0 {
		t.Errorf("got %q", w.events)
	}
}

func TestTheLevelOfWhatIsPosted(t *testing.T) {
	tests := map[string]struct {
		level slog.Level
		want  int
	}{
		"by default, all of it":          {slog.LevelInfo, 2},
		"warnings, with failures":        {slog.LevelWarn, 1},
		"errors, which failures are too": {slog.LevelError, 1},
		"above all levels":               {slog.LevelError + 1, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, w := witnessed()
			p.Settings.Posting.Level = test.level
			p.post(p.body, normal, "A", "b")
			p.post(p.body, warning, "A", "b")
			if len(w.events) != test.want {
				t.Errorf("got %q", w.events)
			}
		})
	}
}

// The records that cannot be read are told of once, and do no harm.
func TestUnreadableStateIsTolerated(t *testing.T) {
	p, w := witnessed()
	broken := &storage.BrokenError{What: "progress", Where: "annotation a", Err: errors.New("unexpected end of JSON input")}
	for range 2 {
		if err := p.tolerate(p.body, broken); err != nil {
			t.Errorf("got %v", err)
		}
	}
	if len(w.log) != 1 || len(w.events) != 1 || !strings.Contains(w.events[0], "Warning UnreadableState") {
		t.Errorf("got %q, %q", w.log, w.events)
	}
	other := errors.New("the database of the storage is down")
	if err := p.tolerate(p.body, other); !errors.Is(err, other) {
		t.Errorf("got %v", err)
	}
}
