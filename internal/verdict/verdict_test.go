package verdict_test

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/verdict"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

type m = map[string]any

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func update(options ...handler.ChangeOption) *handler.Declaration {
	return declared(handler.Update(selector.New("kex"), handlertest.Function(func(context.Context, *handler.Call) error { return nil }), append(options, handler.ID("fn"))...))
}

func declared(d *handler.Declaration, err error) *handler.Declaration {
	if err != nil {
		panic(err)
	}
	return d
}

// changed returns an update of the size from 1 to 2.
func changed() *handler.Cause {
	from := m{"spec": m{"size": int64(1), "name": "a"}}
	to := m{"metadata": m{"labels": m{"app": "db"}}, "spec": m{"size": int64(2), "name": "a"}}
	return &handler.Cause{Reason: cause.Update, Old: from, New: to, Diff: diff.Compute(from, to, diff.Full), CallContext: handler.CallContext{Body: object.NewBody(to)}}
}

func never(*handler.Call) bool { return false }

func labels(value any) handler.Option {
	return handler.Labels(map[string]handler.Matcher{"app": handler.Equal(value)})
}

func annotations() handler.Option {
	return handler.Annotations(map[string]handler.Matcher{"note": handler.Present()})
}

func rejecting() handler.Option {
	return handler.WhenDecoded(&corev1.Pod{}, func(*handler.Call) (bool, error) { return false, nil })
}

func equal(value any) handler.Matcher { return handler.Equal(value) }

func TestVerdicts(t *testing.T) {
	soon, attempts := now.Add(time.Minute), func(r verdict.Record) *verdict.Record { r.Attempts = 2; r.Message = "not yet"; return &r }
	misfit := errors.New("the object does not fit the Go type *v1.Kex")
	size := handler.Field("spec.size")
	create := declared(handler.Create(selector.New("kex"), handlertest.Function(func(context.Context, *handler.Call) error { return nil }), handler.ID("fn")))
	type s = verdict.Facts
	tests := map[string]struct {
		facts    s
		state    verdict.State
		open     bool
		sentence string
	}{
		"it has something to do":       {s{Declaration: update()}, verdict.Due, true, "is due"},
		"its delay is over":            {s{Declaration: update(), Record: attempts(verdict.Record{Delayed: now})}, verdict.Due, true, "is due after 2 attempts: not yet"},
		"it has a delay":               {s{Declaration: update(), Record: attempts(verdict.Record{Delayed: soon})}, verdict.Waiting, true, "waits until 2026-11-22T12:01:00Z after 2 attempts: not yet"},
		"it has succeeded":             {s{Declaration: update(), Record: &verdict.Record{Attempts: 1, Success: true}}, verdict.Succeeded, false, "has succeeded after 1 attempt"},
		"it has failed":                {s{Declaration: update(), Record: attempts(verdict.Record{Failure: true})}, verdict.Failed, false, "has failed permanently after 2 attempts: not yet"},
		"it was skipped":               {s{Declaration: update(), Record: &verdict.Record{Success: true, Message: "by a request"}}, verdict.Skipped, false, "is skipped: by a request"},
		"it has ended while suspended": {s{Declaration: update(), Record: &verdict.Record{Attempts: 1, Success: true}, Suspended: true}, verdict.Succeeded, false, "has succeeded after 1 attempt"},
		"it is for creations":          {s{Declaration: create}, verdict.OtherReason, false, "is not for what has happened to the object"},
		"it was retried for creations": {s{Declaration: create, Record: attempts(verdict.Record{})}, verdict.OtherReason, false, "is not for what has happened to the object"},
		"it is called again":           {s{Declaration: create, TakesPart: true}, verdict.Due, true, "is due"},
		"it is called again, later":    {s{Declaration: create, TakesPart: true, Record: attempts(verdict.Record{Delayed: soon})}, verdict.Waiting, true, "waits until 2026-11-22T12:01:00Z after 2 attempts: not yet"},
		"its field has changed":        {s{Declaration: update(size)}, verdict.Due, true, "is due"},
		"its field has not changed":    {s{Declaration: update(handler.Field("spec.name"))}, verdict.Unchanged, false, "is not called, because its field spec.name has not changed"},
		"its label differs":            {s{Declaration: update(labels("web"))}, verdict.Mismatched, false, "is not for this object, because the label app does not match"},
		"its label matches":            {s{Declaration: update(labels("db"))}, verdict.Due, true, "is due"},
		"its annotation is absent":     {s{Declaration: update(annotations())}, verdict.Mismatched, false, "is not for this object, because the annotation note does not match"},
		"its value differs":            {s{Declaration: update(size, handler.Value(equal(7)))}, verdict.Mismatched, false, "is not for this object, because the value of the field spec.size does not match"},
		"its value before differs":     {s{Declaration: update(size, handler.ValueBefore(equal(7)))}, verdict.Mismatched, false, "is not for this object, because the value before of the field spec.size does not match"},
		"its value after differs":      {s{Declaration: update(size, handler.ValueAfter(equal(7)))}, verdict.Mismatched, false, "is not for this object, because the value after of the field spec.size does not match"},
		"its condition is not met":     {s{Declaration: update(handlertest.When(never))}, verdict.Mismatched, false, "is not for this object, because the function of When at verdict/verdict_test.go:43 does not match"},
		"its typed condition is not":   {s{Declaration: update(rejecting())}, verdict.Mismatched, false, "is not for this object, because the function of WhenObject does not match"},
		"it lost its label":            {s{Declaration: update(labels("web")), Record: attempts(verdict.Record{Delayed: soon})}, verdict.Dropped, false, "is not retried anymore after 2 attempts, because the label app does not match anymore; its last error: not yet"},
		"the object does not fit":      {s{Declaration: update(), Misfit: misfit}, verdict.Misfit, true, "cannot be called: the object does not fit the Go type *v1.Kex"},
		"no filter and no fit":         {s{Declaration: update(labels("web")), Misfit: misfit}, verdict.Mismatched, false, "is not for this object, because the label app does not match"},
		"the object is suspended":      {s{Declaration: update(), Suspended: true}, verdict.Suspended, true, "waits, because the object is suspended"},
		"suspended until a time":       {s{Declaration: update(), Suspended: true, SuspendedUntil: soon, Misfit: misfit}, verdict.Suspended, true, "waits, because the object is suspended until 2026-11-22T12:01:00Z"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.facts.Cause, test.facts.Now = changed(), now
			v := verdict.Of(test.facts)
			if v.State != test.state || v.IsOpen() != test.open || v.String() != test.sentence || v.Handler != test.facts.Declaration.ID {
				t.Errorf("got %+v: %s", v, v)
			}
			if selected := test.facts.Declaration.Selects(test.facts.Cause); selected != v.Filter.Matches() {
				t.Errorf("it is selected: %t, but the filter is %+v", selected, v.Filter)
			}
		})
	}
}

// A handler of children is not called for what happens to its own object.
func TestVerdictsAboutTriggeredHandlers(t *testing.T) {
	d := declared(handler.Child(selector.New("kex"), selector.New("pods"), handlertest.Function(func(context.Context, *handler.Call) error { return nil }), handler.ID("fn")))
	for want, s := range map[string]verdict.Facts{
		"waits for a change of other objects, such as children":      {},
		"waits until 2026-11-22T12:01:00Z after 2 attempts: not yet": {Record: &verdict.Record{Attempts: 2, Message: "not yet", Delayed: now.Add(time.Minute)}},
	} {
		s.Declaration, s.Cause, s.Now = d, changed(), now
		if got := verdict.Of(s); got.String() != want || got.IsOpen() != (want[0:5] != "waits" || s.Record != nil) {
			t.Errorf("got %q, open: %v, want %q", got, got.IsOpen(), want)
		}
	}
}

// A handler of drift is not called for the object itself, so it is never due.
func TestVerdictAboutAHandlerOfDrift(t *testing.T) {
	decide := func(context.Context, *handler.Call) (convergence.Resolution, error) {
		return convergence.Restore(), nil
	}
	d := declared(handler.Drift(selector.New("kex"), handlertest.Returning(decide), handler.ID("drift")))
	if got := verdict.Of(verdict.Facts{Declaration: d, Cause: changed(), Now: now}); got.State != verdict.Untriggered || got.IsOpen() {
		t.Errorf("it %s", got)
	}
}
