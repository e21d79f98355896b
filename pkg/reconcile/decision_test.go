package reconcile

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/rollout"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/revision"
)

// labeled declares a handler of deletions for objects with a label.
func labeled(r *registry.Registry) {
	wanted := handler.Labels(map[string]handler.Matcher{"wanted": handler.Equal("yes")})
	r.Add(handler.Delete(selector.New("kopfexamples"), handlertest.Function(ignoreChange), handler.ID("delete"), wanted))
}

var withFinalizer = m{"metadata": m{"finalizers": []any{"kopf.zalando.org/KopfFinalizerMarker"}}}

// Others can change what an update depends on while it is being written.
func TestDecisionIsRepeatedForEachVersion(t *testing.T) {
	l, base := newLoneWithBase(t, m{}, labeled)
	l.server.change(withFinalizer)
	p := l.newPass(l.engine.resources.get(kex.String()), keyOf("a"), &l.workers.term)
	c, err := p.plan(t.Context(), object.NewBody(l.server.object))
	if err != nil {
		t.Fatal(err)
	}
	update := p.update(c)
	if !update.Decision.RemoveFinalizer {
		t.Error("no handler needs the finalizer, but it stays")
	}
	l.server.change(m{"metadata": m{"labels": m{"wanted": "yes"}}})
	decision, err := update.Decide(t.Context(), object.NewBody(l.server.object))
	if err != nil || decision.RemoveFinalizer {
		t.Errorf("a handler needs the finalizer now, but it is removed: %v", err)
	}
	l.server.change(m{"metadata": m{"labels": nil}})
	if decision, err := update.Decide(t.Context(), object.NewBody(l.server.object)); err != nil || !decision.RemoveFinalizer {
		t.Errorf("no handler needs the finalizer again, but it stays: %v", err)
	}
	base.err = errBroken
	if _, err := update.Decide(t.Context(), object.NewBody(l.server.object)); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}

// A pass over an object that has nothing to do meets a change of others while it removes the
// finalizer.
func TestFinalizerStaysIfAConflictShowsThatItIsNeeded(t *testing.T) {
	tests := map[string]struct {
		conflict m
		err      error
		writes   int
		stays    bool // the finalizer, after this pass
	}{
		"nothing that matters changes":          {m{"status": m{"phase": "x"}}, nil, 1, false},
		"a handler needs the finalizer":         {m{"metadata": m{"annotations": m{"kopf.zalando.org/wanted": "yes"}}}, nil, 0, true},
		"one write ends an update that follows": {m{"spec": m{"size": 1}}, nil, 1, false},
		"the storage is broken":                 {m{"status": m{"phase": "x"}}, errBroken, 0, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l, base := newLoneWithBase(t, m{}, func(r *registry.Registry) {
				r.Add(handler.Create(selector.New("kopfexamples"), handlertest.Function(ignoreChange), handler.ID("create")))
				// This annotation does not belong to the essence.
				r.Add(handler.Delete(selector.New("kopfexamples"), handlertest.Function(ignoreChange), handler.ID("delete"),
					handler.Annotations(map[string]handler.Matcher{"kopf.zalando.org/wanted": handler.Equal("yes")})))
			})
			l.rest()
			l.server.change(withFinalizer)
			l.writes = 0
			l.server.before = func() error {
				l.server.change(test.conflict)
				base.err = test.err
				return nil
			}
			if _, err := l.pass(); !errors.Is(err, test.err) || l.writes != test.writes {
				t.Errorf("got %v, %d writes, want %d", err, l.writes, test.writes)
			}
			if got := len(l.finalizers()) > 0; got != test.stays {
				t.Errorf("the finalizer stays: %t", got)
			}
			if test.err == nil && !l.isAtRest() {
				t.Error("the object is not at rest")
			}
		})
	}
}

// What a handler wants for an object may change what there is to do.
func TestObjectIsLookedAtAgainAfterAnEditWithoutACycle(t *testing.T) {
	change := func(p *patch.Patch) { p.Set("x", "spec", "size") }
	for name, test := range map[string]struct {
		edit  func(p *patch.Patch)
		stops bool // the operator
		calls int
	}{
		"the edit changes the object":          {change, false, 1},
		"the edit changes nothing":             {func(*patch.Patch) {}, false, 0},
		"the operator stops, and calls no one": {change, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var j journal
			l := newLone(t, m{}, func(r *registry.Registry) {
				r.Add(handler.Update(selector.New("kopfexamples"), j.waiting(0), handler.ID("update")))
			})
			l.rest()
			edit := &patch.Patch{}
			test.edit(edit)
			l.state().writes.Add(call.Edit{ID: "timer", Patch: edit})
			if test.stops {
				close(l.stop)
			}
			p := l.begin()
			if _, err := l.end(p); err != nil || l.isAtRest() == test.stops {
				t.Errorf("at rest: %t, %v", l.isAtRest(), err)
			}
			if len(j.ended) != test.calls || int(p.rounds) != test.calls {
				t.Errorf("%d calls of the handler of updates, want %d", len(j.ended), test.calls)
			}
		})
	}
}

func TestObjectGetsItsFinalizerBeforeAnyHandler(t *testing.T) {
	tests := map[string]struct {
		before func(l *lone) error // the write
		begins bool
		fails  bool
	}{
		"it is written":                  {func(*lone) error { return nil }, true, false},
		"the write fails":                {func(*lone) error { return errBroken }, false, true},
		"the object is gone by then":     {func(l *lone) error { l.server.remove(); return nil }, false, false},
		"the object is changed by then":  {func(l *lone) error { l.server.change(m{"spec": m{"size": 1}}); return nil }, true, false},
		"the object is replaced by then": {func(l *lone) error { l.server.change(m{"metadata": m{"uid": "u-2"}}); return nil }, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLone(t, m{}, func(r *registry.Registry) {
				r.Add(handler.Create(selector.New("kopfexamples"), handlertest.Function(ignoreChange), handler.ID("create")))
				r.Add(handler.Delete(selector.New("kopfexamples"), handlertest.Function(ignoreChange), handler.ID("delete")))
			})
			l.server.before = func() error { return test.before(l) }
			p := l.begin()
			if !test.begins && p.rounds > 0 {
				t.Error("the pass continues")
			}
			if (p.calling != nil) != test.begins || (l.err != nil) != test.fails {
				t.Errorf("handlers are called: %t; the error is %v", p.calling != nil, l.err)
			}
			if test.begins && len(l.finalizers()) != 1 {
				t.Error("the finalizer is missing")
			}
			l.engine.permits.Release()
		})
	}
}

func TestRemovalOfAnUnneededFinalizerEndsThePass(t *testing.T) {
	tests := map[string]struct {
		content     m
		before      func(l *lone) error // the write
		edited      bool
		fails, gone bool
	}{
		"it is written":                           {withFinalizer, nil, false, false, false},
		"the write fails":                         {withFinalizer, func(*lone) error { return errBroken }, false, true, false},
		"the object vanishes":                     {withFinalizer, func(l *lone) error { l.server.remove(); return nil }, true, false, true},
		"the object is deleted by the write":      {marked, nil, false, false, true},
		"the object is deleted in spite of edits": {marked, nil, true, false, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLone(t, test.content, labeled)
			if test.before != nil {
				l.server.before = func() error { return test.before(l) }
			}
			if test.edited {
				l.show()
				l.state().resetFor("u-1")
				l.state().writes.Add(call.Edit{ID: "timer", Patch: &patch.Patch{}})
			}
			p := l.begin()
			wake, err := l.end(p)
			if (err != nil) != test.fails || wake != 0 && !test.fails || p.rounds != 0 {
				t.Errorf("got %d rounds, %s, %v", p.rounds, wake, err)
			}
			if l.state().writes.Gone() != test.gone || l.isQuiet() != (!test.gone && !test.fails) {
				t.Errorf("gone: %t; at rest: %t", l.state().writes.Gone(), l.isQuiet())
			}
			if test.gone && l.state().reconciledVersion != "" {
				t.Error("if the watch shows that the object exists, no pass looks at it")
			}
		})
	}
}

// The finalizer alone may be accepted when a write of everything is not. Without anything that can be refused, or called
// before, one write is enough.
func TestFinalizerIsWrittenAloneIfOtherThingsMayFail(t *testing.T) {
	sel := selector.New("kopfexamples")
	deleting := func(r *registry.Registry) {
		r.Add(handler.Delete(sel, handlertest.Function(ignoreChange), handler.ID("delete")))
	}
	tests := map[string]struct {
		declare func(r *registry.Registry)
		prepare func(l *lone)
		writes  int
	}{
		"nothing else": {deleting, nil, 1},
		"a handler in the background": {func(r *registry.Registry) {
			deleting(r)
			r.Add(handler.Timer(sel, handlertest.Function(ignoreChange), handler.ID("timer"), handler.Interval(time.Hour), handler.InitialDelay(time.Hour)))
		}, nil, 2},
		"a handler of children": {func(r *registry.Registry) { deleting(r); parental(r, func() {}) }, nil, 2},
		"conditions":            {func(r *registry.Registry) { deleting(r); r.Add(handler.ForConditions(sel, nil)) }, nil, 2},
		"an edit": {deleting, func(l *lone) {
			edit := &patch.Patch{}
			edit.Set("x", "status", "phase")
			l.state().resetFor("u-1")
			l.state().writes.Add(call.Edit{ID: "timer", Patch: edit})
		}, 2},
		"an earlier failure": {deleting, func(l *lone) {
			l.server.before = func() error { return errBroken }
			if _, err := l.pass(); !errors.Is(err, errBroken) || l.state().writes.HasPending() {
				l.t.Errorf("got %v; something is left: %t", err, l.state().writes.HasPending())
			}
			time.Sleep(time.Hour)
		}, 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLone(t, m{}, test.declare)
				setUpChildren(l.engine)
				if test.prepare != nil {
					test.prepare(l)
				}
				if _, err := l.pass(); err != nil || l.writes != test.writes || len(l.finalizers()) != 1 || !l.isHandled() {
					t.Errorf("got %d writes, %v", l.writes, err)
				}
				l.engine.supervisor.Stop(context.Background())
			})
		})
	}
}

// An error after a write leaves work behind, of which no event reminds the operator.
func TestObjectIsNotAtRestAfterAnErrorOfTheNextRound(t *testing.T) {
	for name, declare := range map[string]func(r *registry.Registry){
		"after an edit without a cycle": func(r *registry.Registry) {
			r.Add(handler.Update(selector.New("kopfexamples"), handlertest.Function(ignoreChange), handler.ID("update")))
		},
		"after a call": func(r *registry.Registry) {
			r.Add(handler.Update(selector.New("kopfexamples"), handlertest.Function(func(_ context.Context, c *handler.Call) error {
				c.Context.Patch.Set("y", "spec", "size")
				return nil
			}), handler.ID("update")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, base := newLoneWithBase(t, m{}, declare)
			l.rest()
			if name == "after a call" {
				l.server.change(m{"spec": m{"size": "x"}})
			} else {
				edit := &patch.Patch{}
				edit.Set("x", "spec", "size")
				l.state().writes.Add(call.Edit{ID: "timer", Patch: edit})
			}
			l.server.after = func() error { base.err = errBroken; return nil }
			if _, err := l.pass(); !errors.Is(err, errBroken) || l.isAtRest() {
				t.Errorf("got %v; at rest: %t", err, l.isAtRest())
			}
		})
	}
}

// What a daemon or a timer wants for its object is in no record, so it must not be lost.
func TestEditSurvivesAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLone(t, m{}, creating)
		l.rest()
		edit := &patch.Patch{}
		edit.Set("x", "spec", "size")
		l.state().writes.Add(call.Edit{ID: "timer", Patch: edit})
		l.server.before = func() error { return errBroken }
		if _, err := l.pass(); !errors.Is(err, errBroken) || !l.state().writes.HasEdits() {
			t.Errorf("got %v; the edit is left: %t", err, l.state().writes.HasEdits())
		}
		time.Sleep(time.Hour)
		l.rest()
		if l.spec()["size"] != "x" {
			t.Errorf("got %v", l.spec())
		}
	})
}

// A rollout learns of an object when a pass looks at it, and at the end of the cycle that it is done.
func TestRolloutsFollowPasses(t *testing.T) {
	var l *lone
	var during []revision.Report
	content := annotated(map[string]string{"last-handled-configuration": `{"spec":{}}`})
	l = newLone(t, content, func(r *registry.Registry) {
		r.Add(handler.Update(selector.New("kopfexamples"), handlertest.Function(func(context.Context, *handler.Call) error {
			during = l.engine.revisions.Numbers()
			return nil
		}), handler.ID("update"), handler.Revision("2"), handler.Rollout(rollout.First(1))))
	})
	l.engine.startRollouts(t.Context(), l.resource())
	for range 2 { // the rollout begins with the first pass
		if _, err := l.pass(); err != nil {
			t.Fatal(err)
		}
	}
	if len(during) != 1 || during[0].Running != 1 {
		t.Errorf("during the call, got %+v", during)
	}
	if after := l.engine.revisions.Numbers(); len(after) != 1 || after[0].Done != 1 {
		t.Errorf("after the pass, got %+v", after)
	}
}

func TestEditThatChangesNothingEndsThePass(t *testing.T) {
	content := annotated(map[string]string{"last-handled-configuration": `{"spec":{"size":1}}`})
	content["spec"] = m{"size": 1}
	calls := 0
	l := newLone(t, content, func(r *registry.Registry) {
		r.Add(handler.Resume(selector.New("kopfexamples"), handlertest.Function(func(_ context.Context, c *handler.Call) error {
			calls++
			c.Context.Patch.Set(1, "spec", "size")
			return nil
		}), handler.ID("resume")))
	})
	l.state().initial.Store(true)
	p := l.begin()
	if _, err := l.end(p); err != nil || calls != 1 || p.rounds != 0 {
		t.Errorf("got %v, %d calls, %d rounds", err, calls, p.rounds)
	}
}
