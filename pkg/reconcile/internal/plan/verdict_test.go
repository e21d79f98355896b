package plan

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/internal/verdict"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/requests"
	"github.com/kopf-go/kopf/pkg/storage"
)

// ordered has two handlers of an update, the second of which follows the first one.
func ordered(r *registry.Registry) {
	fn := handlertest.Function(func(context.Context, *handler.Call) error { return nil })
	r.Add(handler.Update(kexes, fn, handler.ID("update")))
	r.Add(handler.Update(kexes, fn, handler.ID("next"), handler.After("update")))
	r.Add(handler.Create(kexes, fn, handler.ID("create")))
}

func TestVerdictsFollowFromThePlan(t *testing.T) {
	now := time.Now()
	of := func(id string, r storage.Record) map[string]storage.Record {
		r.Started = now
		return map[string]storage.Record{id: r}
	}
	updated := func(r storage.Record) storage.Record {
		r.Purpose = cause.Update
		return r
	}
	waiting := updated(storage.Record{Retries: 2, Delayed: now.Add(time.Hour), Message: "no"})
	tests := map[string]struct {
		records   map[string]storage.Record
		prepare   func(p *Plan)
		suspended bool
		id        string
		want      verdict.Verdict
	}{
		"it is called":                 {nil, nil, false, "update", verdict.Verdict{State: verdict.Due}},
		"it is not for the change":     {nil, nil, false, "create", verdict.Verdict{State: verdict.OtherReason}},
		"it waits for another":         {nil, nil, false, "next", verdict.Verdict{State: verdict.OutOfTurn, Message: "for update"}},
		"it has begun out of its turn": {of("next", updated(storage.Record{})), nil, false, "next", verdict.Verdict{State: verdict.OutOfTurn, Message: "for update"}},
		"it was called in its turn":    {of("next", updated(storage.Record{Retries: 1, Message: "no"})), nil, false, "next", verdict.Verdict{State: verdict.Due, Attempts: 1, Message: "no"}},
		"its turn never comes":         {of("update", updated(storage.Record{Failure: true})), nil, false, "next", verdict.Verdict{State: verdict.Skipped, Message: "its turn never comes: update has failed"}},
		"it waits for its time":        {of("update", waiting), nil, false, "update", verdict.Verdict{State: verdict.Waiting, Until: waiting.Delayed, Attempts: 2, Message: "no"}},
		"a request ends its wait":      {of("update", waiting), func(p *Plan) { p.Cycle.Progress.Retry("update") }, false, "update", verdict.Verdict{State: verdict.Due, Attempts: 2, Message: "no"}},
		"it has succeeded":             {of("update", updated(storage.Record{Retries: 1, Success: true})), nil, false, "update", verdict.Verdict{State: verdict.Succeeded, Attempts: 1}},
		"it has failed":                {of("update", updated(storage.Record{Retries: 1, Failure: true, Message: "no"})), nil, false, "update", verdict.Verdict{State: verdict.Failed, Attempts: 1, Message: "no"}},
		"it has ended for another":     {of("update", storage.Record{Purpose: cause.Create, Retries: 1, Success: true}), nil, false, "update", verdict.Verdict{State: verdict.Due}},
		"the object is suspended":      {nil, nil, true, "update", verdict.Verdict{State: verdict.Suspended, Until: now}},
		"the object does not fit":      {nil, func(p *Plan) { p.Cycle.Progress.SetMisfit("update", errUnfit) }, false, "update", verdict.Verdict{State: verdict.Misfit, Message: "no number"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, c := look{handlers: ordered, base: m{"spec": m{"size": int64(0)}}, records: test.records}.plan(t)
			if test.prepare != nil {
				test.prepare(p)
			}
			suspension := requests.Suspension{Active: test.suspended}
			if test.suspended {
				suspension.Until = now
			}
			for _, d := range c.Handlers.Changing {
				if d.ID != test.id {
					continue
				}
				got := p.Verdict(d, suspension, now)
				if got.State != test.want.State || !got.Until.Equal(test.want.Until) || got.Attempts != test.want.Attempts || got.Message != test.want.Message {
					t.Errorf("got %+v", got)
				}
			}
		})
	}
}

var errUnfit = errors.New("no number")

// A request to skip a handler counts before it is honored.
func TestHandlersThatWillBeSkipped(t *testing.T) {
	of := func(purpose cause.Reason, success bool) *storage.Record {
		return &storage.Record{Started: time.Now(), Purpose: purpose, Retries: 1, Success: success}
	}
	skip := func(p *call.Progress) { p.Skip("a", cause.Update) }
	tests := map[string]struct {
		stored *storage.Record
		do     func(p *call.Progress)
		want   bool
	}{
		"without a record":         {nil, skip, true},
		"while it is retried":      {of(cause.Update, false), skip, true},
		"after another cycle":      {of(cause.Create, true), skip, true},
		"no request, no record":    {nil, nil, false},
		"no request, and retried":  {of(cause.Update, false), nil, false},
		"no request, and ended":    {of(cause.Update, true), nil, false},
		"no request, for a change": {of(cause.Create, true), nil, false},
		"it has just failed":       {nil, func(p *call.Progress) { p.Fail("a", errUnfit); p.Load("a").Purpose = cause.Update }, false},
	}
	for name, test := range tests {
		progress := call.NewProgress(func(string) *storage.Record { return test.stored })
		if test.do != nil {
			test.do(progress)
		}
		p := &Plan{Cause: handler.Cause{Reason: cause.Update}, Cycle: &record.Cycle{Progress: progress}}
		if got := p.WillSkip("a"); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// Another operator may handle objects that no handler selects by their metadata.
func TestResponsibilityForObjects(t *testing.T) {
	off := m{"labels": m{"off": "yes"}}
	tests := map[string]struct {
		look look
		want bool
	}{
		"a change handler":  {look{handlers: everything}, true},
		"no change handler": {look{handlers: everything, object: off}, false},
		"a daemon":          {look{handlers: daemons}, true},
		"no daemon":         {look{handlers: daemons, object: off}, false},
		"a handler of a field that the object does not have": {look{handlers: colored}, true},
		"none, and not the field":                            {look{handlers: colored, object: off}, false},
		"a daemon that it does not fit":                      {look{handlers: unfitDaemon, object: m{"spec": m{"hostNetwork": "yes"}}}, true},
	}
	for name, test := range tests {
		p, c := test.look.plan(t)
		if got := p.IsResponsible(c.Handlers); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// colored has a handler for objects with a color, unless they have the label "off".
func colored(r *registry.Registry) {
	fn := handlertest.Function(func(context.Context, *handler.Call) error { return nil })
	r.Add(handler.Update(kexes, fn, handler.ID("update"), handler.Field("spec.color"), handler.Labels(map[string]handler.Matcher{"off": handler.Absent()})))
}

// unfitDaemon has a daemon of a Go type.
func unfitDaemon(r *registry.Registry) {
	r.Add(handler.Daemon(kexes, handlertest.Typed(&corev1.Pod{}, func(context.Context, *handler.Call) error { return nil }), handler.ID("daemon")))
}

func TestPlansSayWhatRequestsDo(t *testing.T) {
	asking := func(verb, value string) m { return m{"annotations": m{"kopf.dev/request-" + verb: value}} }
	same := m{"spec": m{"size": int64(1)}}
	p, _ := look{handlers: everything, object: asking("skip", "1 update"), base: m{"spec": m{"size": int64(0)}}, held: true}.plan(t)
	if !p.Cycle.Skipped || !p.WillSkip("update") {
		t.Error("the handler is not skipped")
	}
	p, _ = look{handlers: everything, object: asking("retry", "1 update"), base: same, held: true}.plan(t)
	if len(p.Requests.Notes) != 1 || !p.Requests.Notes[0].Refused || p.Cycle.Skipped {
		t.Errorf("at rest: got %+v", p.Requests)
	}
	p, c := look{handlers: ordered, object: asking("rerun", "1 create"), base: m{"spec": m{"size": int64(0)}}}.plan(t)
	for _, d := range c.Handlers.Changing {
		if got := p.Verdict(d, requests.Suspension{}, time.Now()); d.ID == "create" && got.State != verdict.Due {
			t.Errorf("a handler that does not match, but is rerun, %s", got)
		}
	}
	for name, test := range map[string]m{
		"out of scope": {"annotations": asking("rerun", "1 update")["annotations"], "labels": m{"off": "yes"}},
		"released":     {"annotations": asking("rerun", "1 update")["annotations"], "deletionTimestamp": "2026-01-01T00:00:00Z"},
	} {
		if p, _ := (look{handlers: everything, object: test, base: same}).plan(t); p.Requests != nil {
			t.Errorf("%s: got %+v", name, p.Requests)
		}
	}
}

func TestCyclesOfPlansKnowTheirHandlers(t *testing.T) {
	p, c := look{handlers: everything, base: m{"spec": m{"size": int64(0)}}, held: true}.plan(t)
	state := func(n int64) m { return m{"spec": m{"size": n}} }
	if !p.Cycle.IsDue("update", state(0), state(1)) || p.Cycle.IsDue("create", state(0), state(1)) || p.Cycle.IsDue("update", state(1), state(1)) {
		t.Error("the wrong handlers are due")
	}
	if !p.AppliesToCreation(c.Handlers) {
		t.Error("a handler is called for the creation")
	}
	holding := func(r *registry.Registry) {
		fn := handlertest.Function(func(context.Context, *handler.Call) error { return nil })
		r.Add(handler.Delete(kexes, fn, handler.ID("holds"), handler.HoldOnFailure()))
		r.Add(handler.Delete(kexes, fn, handler.ID("releases")))
	}
	p, c = look{handlers: holding, object: m{"deletionTimestamp": "2026-01-01T00:00:00Z"}, base: state(1), held: true}.plan(t)
	if got := p.Cycle.HoldOnFailure; !slices.Equal(got, []string{"holds"}) || p.AppliesToCreation(c.Handlers) {
		t.Errorf("got %q", got)
	}
}

// A handler that is ahead of the open cycle is not called in it.
func TestPlansContinueOpenCycles(t *testing.T) {
	p, _ := look{
		handlers: everything, base: m{"spec": m{"size": int64(0)}}, held: true,
		records: map[string]storage.Record{"update": {Started: time.Now(), Purpose: cause.Update, Success: true, Cycle: "7"}},
		open:    &storage.Cycle{Token: "7", At: map[string]int{"resize/spec.size": 0}},
	}.plan(t)
	if !p.Cycle.Progress.Load("resize/spec.size").Finished() {
		t.Error("the handler is called again")
	}
}
