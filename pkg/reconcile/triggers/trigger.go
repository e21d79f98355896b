package triggers

import (
	"sync"

	"github.com/kopf-go/kopf/pkg/model/handler"
)

// Trigger decides when one handler is called for one object. Passes call its methods, except
// IsPending, which must be safe for concurrent use, also with whatever causes the calls.
type Trigger interface {
	// IsPending reports whether there are calls: now, or after a delay.
	IsPending() bool
	// Calls returns the pending calls, in their order. What is called has the options of
	// the handler, and its id, or one below it: "handler/call". The ids differ. An earlier
	// call that has begun and not ended was interrupted: it is pending.
	Calls() []*handler.Declaration
	// Begin is called immediately before a call.
	Begin(id string)
	// End is called after each call that has begun. If again is set, the call stays pending;
	// otherwise it has ended, and is pending only if something has happened since it began.
	End(id string, again bool)
	// Stop ends the trigger: the handler does not match the object anymore, or the object is
	// gone.
	Stop()
}

// Flag is a Trigger with one call, for everything that has happened since the last one. It is
// safe for concurrent use.
type Flag struct {
	handler *handler.Declaration
	enqueue func()

	mu      sync.Mutex
	pending bool
	running bool
}

var _ Trigger = (*Flag)(nil)

// NewFlag returns a Flag that is not set. The function requests a pass over the object. It is
// called without locks.
func NewFlag(d *handler.Declaration, enqueue func()) *Flag {
	return &Flag{handler: d, enqueue: enqueue}
}

// Set makes the handler be called, or once more if it is running. It can be called at any time,
// also in a Follower.
func (f *Flag) Set() {
	f.mu.Lock()
	wasPending := f.pending
	f.pending = true
	f.mu.Unlock()
	if !wasPending {
		f.enqueue()
	}
}

// IsPending implements Trigger.
func (f *Flag) IsPending() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pending || f.running
}

// Calls implements Trigger.
func (f *Flag) Calls() []*handler.Declaration {
	if !f.IsPending() {
		return nil
	}
	return []*handler.Declaration{f.handler}
}

// Begin implements Trigger.
func (f *Flag) Begin(string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending = false
	f.running = true
}

// End implements Trigger.
func (f *Flag) End(_ string, again bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending = f.pending || again
	f.running = false
}

// Stop implements Trigger.
func (f *Flag) Stop() {}
