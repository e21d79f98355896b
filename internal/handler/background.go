package handler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-go/kopf/internal/schedule"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/model/stop"
)

// DecidesNext reports whether code of users, or the clock, decides after a call of a timer when it is called next.
func (d *Declaration) DecidesNext() bool { return d.IntervalFunc != nil || d.Schedule != nil }

// IntervalAfter returns the interval that a timer declares by a function, which is called with its last
// call. An interval that is not positive is an error of the object.
func (d *Declaration) IntervalAfter(c *Call) (interval time.Duration, err error) {
	err = WithRecover(func() error {
		interval = d.IntervalFunc(c)
		if interval <= 0 {
			return fmt.Errorf("the function of kopf.IntervalFunc returned %s: an interval must be positive", interval)
		}
		return nil
	})
	return interval, err
}

// Schedule says at which times of the clock a timer is called.
type Schedule struct {
	// Text is the schedule if it is the same for all objects. Of returns it for an object otherwise.
	Text string
	Of   func(*Call) (string, error)
	// Zone is the time zone of schedules that name none.
	Zone *time.Location
	// CatchUp is how many of the runs that were missed are made up for: the last ones.
	CatchUp int

	common schedule.Schedule // of all objects
}

// UnreadableScheduleError is about an object whose schedule cannot be read, or never runs. Only a change of the object
// corrects it.
type UnreadableScheduleError struct {
	Text string
	Err  error
}

func (e *UnreadableScheduleError) Error() string { return e.Err.Error() }

func (e *UnreadableScheduleError) Unwrap() error { return e.Err }

// Read returns the schedule of an object. It runs code of users if Of is set.
func (s *Schedule) Read(c *Call) (found schedule.Schedule, err error) {
	if s.Of == nil {
		return s.common, nil
	}
	err = WithRecover(func() error {
		text, err := s.Of(c)
		if err != nil {
			return err
		}
		found, err = schedule.Parse(text, s.Zone)
		if err != nil {
			return &UnreadableScheduleError{text, err}
		}
		return nil
	})
	return found, err
}

// NextRun returns the run of a schedule that follows the last one. It can be one that was missed.
func (s *Schedule) NextRun(found schedule.Schedule, last, now time.Time) (run time.Time, err error) {
	missed := found.Missed(last, now, s.CatchUp)
	if len(missed) > 0 {
		return missed[0], nil
	}
	if last.After(now) { // the clock of another replica was ahead
		now = last
	}
	run = found.Next(now)
	if run.IsZero() {
		return run, errors.New("the schedule has no time within five years")
	}
	return run, nil
}

// parse parses the schedule if all objects have the same.
func (s *Schedule) parse() (err error) {
	if s.Of == nil {
		s.common, err = schedule.Parse(s.Text, s.Zone)
	}
	return err
}

// validateSchedule checks what belongs to a schedule, and parses it.
func (d *Declaration) validateSchedule() {
	if d.Schedule == nil {
		return
	}
	d.addProblem(d.Schedule.parse())
	if d.Interval != 0 || d.IntervalFunc != nil || d.Idle != 0 || d.InitialDelay != nil {
		d.addProblem(errors.New("a timer with a schedule has no interval, idle time, or initial delay: declare a second timer for these"))
	}
}

// Background is what the call of a daemon or a timer asks the engine for while it runs.
type Background interface {
	// Stopper stops the call.
	Stopper() *Stopper
	// Done returns a channel that is closed when the context of a daemon is done.
	Done() <-chan struct{}
	// Changed returns a channel that has a value when what a daemon looks at has changed. Nil means that it looks at
	// nothing.
	Changed() <-chan struct{}
	// Children returns the children that a daemon looks at.
	Children() []*object.Snapshot
	// Write writes an edit, and returns when it is stored, or why it is not.
	Write(ctx context.Context, result any, edit *patch.Patch) error
}

// Owned selects children that a daemon looks at: a resource, or a Go type.
type Owned struct {
	Selector selector.Selector
	Object   runtime.Object
}

// LooksAtSomething reports whether a daemon is woken by changes.
func (d *Declaration) LooksAtSomething() bool { return len(d.WakeOn)+len(d.Owned) > 0 }

// LooksAt reports whether the handler needs the objects that the selector finds as children.
func (d *Declaration) LooksAt(children selector.Selector) bool {
	return slices.ContainsFunc(d.ChildSelectors(), func(sel selector.Selector) bool { return sel == children })
}

// ChildSelectors returns the selectors of the children that the handler is called for, or looks at.
func (d *Declaration) ChildSelectors() []selector.Selector {
	if d.Kind == OnChild {
		return []selector.Selector{d.Children}
	}
	var all []selector.Selector
	for _, owned := range d.Owned {
		all = append(all, owned.Selector)
	}
	return all
}

// Stopper is the engine's means to stop a daemon or a timer. Its zero value is ready to use, and
// safe for concurrent use.
type Stopper struct {
	mu     sync.Mutex
	done   chan struct{}
	reason stop.Reason
}

// NewStopper returns a Stopper for a handler that is about to start.
func NewStopper() *Stopper { return &Stopper{} }

// Stop asks the handler to stop, and adds the reason.
func (s *Stopper) Stop(reason stop.Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reason == 0 && reason != 0 {
		close(s.channel())
	}
	s.reason |= reason
}

// Done returns a channel that is closed when the handler is asked to stop.
func (s *Stopper) Done() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.channel()
}

// channel creates the channel on first use. The caller must hold the lock.
func (s *Stopper) channel() chan struct{} {
	if s.done == nil {
		s.done = make(chan struct{})
	}
	return s.done
}

// Reason returns the reasons, or 0 if the handler was not asked to stop.
func (s *Stopper) Reason() stop.Reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason
}
