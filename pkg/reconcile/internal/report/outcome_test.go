package report_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/internal/reportonce"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
)

// witness takes what the operator logs and posts.
type witness struct{ log, events []string }

func (w *witness) Post(about corev1.ObjectReference, eventType, reason, message string) {
	w.events = append(w.events, fmt.Sprintf("%s/%s %s %s: %s", about.Kind, about.Name, eventType, reason, message))
}

// witnessed is a reporter whose lines and events are kept.
func witnessed() (report.Reporter, *object.Body, *witness) {
	w := &witness{}
	logger := funcr.New(func(_, args string) { w.log = append(w.log, args) }, funcr.Options{Verbosity: 1})
	body := object.NewBody(map[string]any{"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": map[string]any{"name": "one", "namespace": "ns", "uid": "u-1"}})
	return report.Reporter{Log: logger, Poster: w}, body, w
}

// Users do not know the ids of handlers that the library declares.
func TestOutcomesAreReportedUnderTheIDThatUsersKnow(t *testing.T) {
	r, body, w := witnessed()
	r.IDs = map[string]string{"fn/internal": "fn"}
	r.Outcome(body, "fn/internal", call.Outcome{Final: true, Err: errors.New("no network")})
	r.Outcome(body, "fn/internal", call.Outcome{Final: true})
	if got := fmt.Sprint(w.log, w.events); len(w.log) != 2 || len(w.events) != 2 || strings.Contains(got, "internal") || !strings.Contains(got, "Handler fn succeeded.") {
		t.Errorf("got %s", got)
	}
}

func TestOutcomesAreReported(t *testing.T) {
	failure := errors.New("no network")
	tests := map[string]struct {
		outcome call.Outcome
		log     []string // parts of the line
		event   string
	}{
		"a success": {
			call.Outcome{Final: true},
			[]string{"The handler succeeded.", `"handler"="fn"`},
			"KopfExample/one Normal HandlerSucceeded: Handler fn succeeded.",
		},
		"an error that is ignored": {
			call.Outcome{Final: true, Ignored: failure}, []string{"The handler failed; this is ignored.", "no network"}, "",
		},
		"an error that is retried": {
			call.Outcome{Err: failure, Delay: time.Minute},
			[]string{"The handler failed and will be retried.", "no network", `"delay"="1m0s"`},
			"KopfExample/one Warning HandlerRetrying: Handler fn failed and will be retried: no network",
		},
		"an error for good": {
			call.Outcome{Final: true, Err: failure},
			[]string{"The handler failed permanently.", "no network"},
			"KopfExample/one Warning HandlerFailed: Handler fn failed permanently: no network",
		},
		"a panic, with its place": {
			call.Outcome{Err: &handler.PanicError{Value: "boom", Stack: []byte("main.go:7")}},
			[]string{"panic: boom", `"stack"="main.go:7"`},
			"KopfExample/one Warning HandlerRetrying: Handler fn failed and will be retried: panic: boom",
		},
		"a wait for sub-handlers": {
			call.Outcome{Err: &handler.SubhandlersError{}, Delay: time.Second}, []string{"The handler waits for its sub-handlers."}, "",
		},
		"a wait for sub-handlers that is too long": {
			call.Outcome{Final: true, Err: &handler.TimeoutError{ID: "fn", Timeout: time.Second, Err: &handler.SubhandlersError{}}},
			[]string{"The handler failed permanently."},
			"KopfExample/one Warning HandlerFailed: Handler fn failed permanently: handler fn has timed out after 1s: some sub-handlers are not done yet",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r, body, w := witnessed()
			r.Outcome(body, "fn", test.outcome)
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

func TestSchedulesAreReported(t *testing.T) {
	failure := errors.New("no zone")
	run := time.Date(2026, 1, 1, 3, 0, 0, 0, time.FixedZone("CET", 3600))
	for name, test := range map[string]struct {
		report func(r report.Reporter, body *object.Body)
		log    []string // parts of the line
		event  string
	}{
		"a run": {
			func(r report.Reporter, _ *object.Body) { r.Ran("fn", run) },
			[]string{"The run of the schedule succeeded.", `"handler"="fn"`, `"scheduled"="2026-01-01T02:00:00Z"`},
			"",
		},
		"a schedule that is looked at again": {
			func(r report.Reporter, body *object.Body) { r.Unscheduled(body, "fn", failure, time.Minute) },
			[]string{"The next run of the timer is unknown, and will be looked for again.", "no zone", `"handler"="fn"`, `"delay"="1m0s"`},
			"KopfExample/one Warning ScheduleFailed: Handler fn has no next run: no zone",
		},
		"a schedule that cannot be read": {
			func(r report.Reporter, body *object.Body) { r.Unscheduled(body, "fn", failure, 0) },
			[]string{"The next run of the timer is unknown, until the object is corrected.", "no zone"},
			"KopfExample/one Warning ScheduleFailed: Handler fn has no next run: no zone",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, body, w := witnessed()
			test.report(r, body)
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

// The log does not repeat what people have to do at every attempt, but it does not fall silent either.
func TestRefusalsOfAChildAreRepeatedLessAndLess(t *testing.T) {
	r, body, w := witnessed()
	r.Object = &reportonce.Set{}
	refused := func(id, text string) {
		r.Outcome(body, id, call.Outcome{Err: &convergence.ChildError{Err: errors.New(text)}, Delay: time.Second})
	}
	for range 16 {
		refused("fn", "no quota")
	}
	if len(w.events) != 5 { // 1, 2, 4, 8, 16
		t.Errorf("16 refusals: %d events", len(w.events))
	}
	refused("fn", "forbidden")
	refused("other", "no quota")
	if len(w.events) != 7 {
		t.Errorf("two new refusals: %q", w.events[5:])
	}
	for range 4 {
		r.Outcome(body, "fn", call.Outcome{Err: errors.New("no network"), Delay: time.Second})
	}
	if len(w.events) != 11 {
		t.Errorf("errors of functions are not all reported: %q", w.events[7:])
	}
}
