package faults

import (
	"context"
	"errors"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// company counts the running daemons of one object by living operators. The requests of a
// dead operator reach nothing.
type company map[*operator]int

// appears records that a daemon starts, unless its operator is dead.
func (h *history) appears(o *operator, t *kopf.Task) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if o.dead.Load() {
		return false
	}
	h.log("%s starts a daemon, retry %d, on version %s", o.name, t.Retry(), t.Body().ResourceVersion())
	if h.company[o]++; h.company[o] > 1 {
		h.breach("%s runs %d daemons at the same time", o.name, h.company[o])
	}
	// A watch can show the finalizer before the response to the write arrives, and a daemon can be started with an older
	// version than that of the write.
	if !contains(t.Body().Finalizers(), ourFinalizer) && !h.committed.isHeld() {
		h.breach("a daemon was started before the finalizer was there")
	}
	return true
}

// leaves records that a daemon has ended.
func (h *history) leaves(o *operator, t *kopf.Task) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.company[o]--
	if !o.dead.Load() {
		h.log("a daemon of %s ends: %s", o.name, t.StopReason())
	}
}

// judgeCompany checks that an object is held while a daemon runs for it. While operators
// overlap, neither can know the other's daemon.
func (h *history) judgeCompany(operator string, after state) {
	if h.overlap || after.isHeld() {
		return
	}
	for o, running := range h.company {
		if running > 0 && !o.dead.Load() {
			h.breach("%s has let the object go while a daemon of %s runs", operator, o.name)
		}
	}
}

// accompany is a daemon that writes something and then waits until it must stop, which takes a
// moment.
func (o *operator) accompany(_ context.Context, t *kopf.Task) error {
	if !o.run.history.appears(o, t) {
		return errDead
	}
	defer o.run.history.leaves(o, t)
	if t.Retry() == 0 {
		t.Patch().Merge(map[string]any{"status": map[string]any{"phase": "accompanied"}})
		return kopf.Temporary(errors.New("this was the beginning"), 30*time.Millisecond)
	}
	<-t.Stopped()
	<-time.After(50 * time.Millisecond)
	return nil
}

// observe is a timer that copies the spec to the status.
func (o *operator) observe(_ context.Context, t *kopf.Tick) error {
	if o.dead.Load() {
		return errDead
	}
	field, _ := t.Spec().String("field")
	t.SetResult(map[string]any{"field": field})
	return nil
}

// withCompany extends a stage: its background handlers must also have finished.
func withCompany(s stage) stage {
	handled := s.reached
	s.reached = func(r *run, now state) bool {
		if !handled(r, now) || !now.isHeld() {
			return false
		}
		wanted, _ := now.body.Spec().String("field")
		observed, _ := now.body.Status().String("timer", "field")
		phase, _ := now.body.Status().String("phase")
		return observed == wanted && phase == "accompanied"
	}
	return s
}
