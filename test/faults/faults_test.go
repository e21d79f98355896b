package faults

import (
	"net/http"
	"slices"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// fault is a failure of one write.
type fault struct {
	// at is called in place of the write.
	at func(r *run, w *write) (*http.Response, error)
	// impatient makes the operator wait only briefly for the watch.
	impatient bool
	// lives is set if the same operator does everything, and no other client changes
	// anything: its handlers are called exactly as without the fault.
	lives bool
	// replaces is set if another operator continues.
	replaces bool
	// meddles is set if another client changes the essence of the object.
	meddles bool
	// end is the final object if it differs from that of the scenario.
	end *end
	// lists is set if client-go must list instead of watching from the beginning.
	lists bool
	// standby starts another replica on standby.
	standby bool
	// general faults are not tried with special scenarios.
	general bool
	// short faults are also tried with -short.
	short bool
	// slack is the number of additional writes beyond the general allowance.
	slack int
}

// faults contains all failures of a write.
var faults = map[string]fault{
	"crash-before": {replaces: true, at: func(_ *run, w *write) (*http.Response, error) {
		return nil, crash(w)
	}},
	"crash-after": {short: true, replaces: true, at: func(_ *run, w *write) (*http.Response, error) {
		_, _ = w.commit()
		return nil, crash(w)
	}},
	"lost-answer": {short: true, lives: true, at: func(_ *run, w *write) (*http.Response, error) {
		return loseAnswer(w)
	}},
	// The write is committed, but the API server responds with a timeout and a delay.
	"timeout": {lives: true, at: func(r *run, w *write) (*http.Response, error) {
		r.history.note("#%d takes too long", w.number)
		if _, err := w.commit(); err != nil {
			return nil, err
		}
		answer := failure(w.request, http.StatusGatewayTimeout, "Timeout")
		answer.Header.Set("Retry-After", "1")
		return answer, nil
	}},
	// The response is lost, as is the next one, and the object changes meanwhile.
	"lost-blind": {meddles: true, at: func(r *run, w *write) (*http.Response, error) {
		w.operator.failReads.Store(1)
		answer, err := loseAnswer(w)
		r.meddle("labels")
		return answer, err
	}},
	// The write is committed after the operator has looked for it and continued.
	"late": {lives: true, at: func(r *run, w *write) (*http.Response, error) {
		r.late = w.later()
		r.history.note("#%d is on its way still", w.number)
		return nil, errLost
	}},
	"unavailable": {lives: true, at: func(r *run, w *write) (*http.Response, error) {
		r.history.note("#%d does not reach the API server", w.number)
		return failure(w.request, http.StatusServiceUnavailable, "ServiceUnavailable"), nil
	}},
	"stall": {short: true, lives: true, impatient: true, at: func(r *run, w *write) (*http.Response, error) {
		w.operator.watches.shut()
		r.history.note("the watch stalls")
		return w.commit()
	}},
	"stall-lost": {general: true, lives: true, impatient: true, at: func(r *run, w *write) (*http.Response, error) {
		w.operator.watches.shut()
		r.history.note("the watch stalls")
		return loseAnswer(w)
	}},
	"relist": {general: true, lives: true, impatient: true, at: func(r *run, w *write) (*http.Response, error) {
		w.operator.watches.cut()
		r.history.note("the watch is broken")
		return w.commit()
	}},
	"edit-labels":     {general: true, meddles: true, at: meddling("labels")},
	"edit-finalizers": {general: true, at: meddling("finalizers")},
	"edit-spec":       {short: true, meddles: true, at: meddling("spec")},
	// Another client deletes the object.
	"deleted": {general: true, end: &end{gone, wasDeleted}, at: func(r *run, w *write) (*http.Response, error) {
		r.deleteObject()
		return w.commit()
	}},
	// Another client deletes the object by force, and creates another one of the same name.
	"replaced": {general: true, end: &end{handled, wasReplaced}, at: func(r *run, w *write) (*http.Response, error) {
		r.replaceObject()
		return w.commit()
	}},
	// The next operator uses API servers that lag behind.
	"crash-stale": {replaces: true, lists: true, impatient: true, at: func(r *run, w *write) (*http.Response, error) {
		r.keepList(w)
		_, _ = w.commit()
		return nil, crash(w)
	}},
	// A replica takes over that has not seen the last write.
	"crash-standby": {replaces: true, standby: true, impatient: true, at: func(r *run, w *write) (*http.Response, error) {
		r.standby.watches.shut()
		r.history.note("the watch of %s stalls", r.standby.name)
		_, _ = w.commit()
		w.operator.die()
		return nil, errDead
	}},
	"takeover-alive": {short: true, replaces: true, slack: 6, at: func(r *run, w *write) (*http.Response, error) {
		r.handOver(w, false)
		return w.commit()
	}},
	"takeover-midway": {replaces: true, slack: 6, at: func(r *run, w *write) (*http.Response, error) {
		r.handOver(w, true)
		return w.commit()
	}},
	"takeover-dead": {general: true, replaces: true, at: func(r *run, w *write) (*http.Response, error) {
		r.handOver(w, false)
		_, _ = w.commit()
		w.operator.die()
		return nil, errDead
	}},
}

// end is the final object if others decide about it.
type end struct {
	reached func(r *run, now state) bool
	verify  func(r *run)
}

// wasDeleted checks that the deletion handlers were called if they could hold the object.
func wasDeleted(r *run) {
	deleted := func(s start) bool { return s.reason == kopf.ReasonDelete }
	if r.heldAtEnd && !slices.ContainsFunc(r.history.starts, deleted) {
		r.t.Errorf("%s: the object was held, and no deletion handler was called", r.plan)
	}
}

// wasReplaced checks that the other object was handled separately.
func wasReplaced(r *run) {
	now := r.now()
	created := func(s start) bool { return s.reason == kopf.ReasonCreate && s.uid == string(now.body.UID()) }
	if !slices.ContainsFunc(r.history.starts, created) {
		r.t.Errorf("%s: the new object was not handled", r.plan)
	}
	if err := now.inherited(); err != nil {
		r.t.Errorf("%s: %v", r.plan, err)
	}
}

// crash kills the operator, and lets another one replace it.
func crash(w *write) error {
	w.operator.die()
	w.operator.run.crashed <- struct{}{}
	return errDead
}

func loseAnswer(w *write) (*http.Response, error) {
	answer, err := w.commit()
	if err != nil {
		return nil, err
	}
	_ = answer.Body.Close()
	w.operator.run.history.note("the answer to #%d is lost", w.number)
	return nil, errLost
}

func meddling(what string) func(*run, *write) (*http.Response, error) {
	return func(r *run, w *write) (*http.Response, error) {
		r.meddle(what)
		return w.commit()
	}
}
