package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// intend makes the intent of a cycle as it stands now.
func (p *pass) intend(c *cycle) *intent {
	in := &intent{cycle: c, base: c.base, stopping: p.stopped(), foreign: p.foreign}
	in.release = c.held && (c.Reason == cause.Delete || !c.wanted)
	in.awaits = c.deleting && p.awaited()
	return in
}

func (p *pass) stopped() bool {
	select {
	case <-p.stopping:
		return true
	default:
		return false
	}
}

// record writes what has come of the handlers, and tells when to come back.
func (p *pass) record(ctx context.Context, c *cycle) (again bool, wake time.Duration, err error) {
	in, before := p.intend(c), p.body
	p.declareHeld(in)
	contributed := len(p.memory.unsent) > 0
	if err := p.commit(ctx, in); err != nil {
		return false, 0, ignoreGone(err)
	}
	if p.memory.released || p.stopped() {
		return false, 0, nil
	}
	if !in.ends() {
		wake, waiting := c.progress.NextDelay()
		return waiting && wake == 0, wake, nil
	}
	if !p.memory.handled {
		return true, 0, nil // there is something to resume
	}
	// What has changed since the cycle began, or was changed by the handlers
	// themselves or by others in between, is the next change.
	if contributed || p.foreign || !object.Equal(c.first, c.New) {
		return p.body != before, 0, nil
	}
	p.settle()
	return false, 0, nil
}

// conclude notes that a cycle has ended, and tells so.
func (p *pass) conclude(in *intent) {
	if !in.ends() {
		return
	}
	c := in.cycle
	p.memory.handled = p.resumed(c)
	if !c.called {
		return
	}
	succeeded, failed := c.progress.Counts()
	p.log.Info(fmt.Sprintf("The %s is processed: %d succeeded; %d failed.", c.Reason.Noun(), succeeded, failed))
	p.post(p.body, normal, "CycleFinished", fmt.Sprintf("The %s is processed: %d succeeded; %d failed.", c.Reason.Noun(), succeeded, failed))
}

// resumed tells that everything was called that an object asks of a new process. Of a
// cycle that an earlier process has begun, the resuming handlers may have been called
// by that one: what they have prepared in its memory is gone. They are called then in
// a cycle of their own, but for those that this process has called.
func (p *pass) resumed(c *cycle) bool {
	inherited := p.memory.inherited
	p.memory.inherited = false
	return !inherited || c.deleting
}

// hold puts the finalizer on the object, and goes on with the rest.
func (p *pass) hold(ctx context.Context) (again bool, wake time.Duration, err error) {
	if err := p.commit(ctx, &intent{hold: true}); err != nil {
		return false, 0, ignoreGone(err)
	}
	return true, 0, nil
}

// leave lets go of an object with which nothing is to be done: of the finalizer
// that nobody needs, and of the progress of a cycle that is not there any more.
func (p *pass) leave(ctx context.Context, c *cycle) (again bool, wake time.Duration, err error) {
	in := &intent{base: c.base, release: c.held && !c.wanted}
	if c.inScope && c.Reason == cause.NoOp && c.progress.HasLeftovers() {
		in.cycle, in.sweep = c, true
	}
	before, contributed := p.body, len(p.memory.unsent) > 0
	if err := p.commit(ctx, in); err != nil {
		return false, 0, ignoreGone(err)
	}
	if (contributed || p.foreign) && p.body != before {
		return !p.memory.released, 0, nil
	}
	p.settle()
	return false, 0, nil
}

// settle notes that nothing is left to do at this version of the object.
func (p *pass) settle() { p.memory.settled = p.body.ResourceVersion() }

// ignoreGone makes a success of a disappearance: there is nothing left to do.
func ignoreGone(err error) error {
	if errors.Is(err, errGone) {
		return nil
	}
	return err
}
