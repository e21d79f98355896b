package page

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// patience is how long the objects are watched after the last viewer has left, who may only load another page.
const patience = time.Minute

// audience watches the objects while the page is open, and tells the viewers what changes. Without viewers, nothing is watched,
// and nothing is kept.
type audience struct {
	watch func(context.Context) // until the context is done

	mu      sync.Mutex
	viewers map[*viewer]bool
	stop    context.CancelFunc // ends the watches; nil if nothing is watched
	ended   chan struct{}      // closed when the latest watches have ended
	leaving *time.Timer
	closed  chan struct{}
}

// viewer is an open page.
type viewer struct {
	// resource and object are what it shows; empty for all.
	resource string
	object   types.NamespacedName
	changed  chan struct{} // has room for one
}

func newAudience(watch func(context.Context)) *audience {
	ended := make(chan struct{})
	close(ended)
	return &audience{watch: watch, viewers: map[*viewer]bool{}, ended: ended, closed: make(chan struct{})}
}

// look watches the objects for a while.
func (a *audience) look() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.start()
	a.leave()
}

// start starts the watches, unless they run. It is called with the lock.
func (a *audience) start() {
	if a.stop != nil || a.isClosed() {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	former := a.ended
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-former // they keep the same rows
		a.watch(ctx)
	}()
	a.stop = stop
	a.ended = ended
}

// leave lets the watches end later, unless there are viewers then. It is called with the lock.
func (a *audience) leave() {
	if a.leaving != nil {
		a.leaving.Stop()
	}
	a.leaving = time.AfterFunc(patience, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.viewers) == 0 {
			a.end()
		}
	})
}

// end ends the watches, which forget the rows. It is called with the lock.
func (a *audience) end() {
	if a.stop != nil {
		a.stop()
		a.stop = nil
	}
}

// join adds a viewer until it calls the function.
func (a *audience) join(v *viewer) (leave func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.start()
	a.viewers[v] = true
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.viewers, v)
		a.leave()
	}
}

// tell tells the viewers about a change of an object of a resource, or of all if it has no name.
func (a *audience) tell(resource string, object types.NamespacedName, isOther bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for v := range a.viewers {
		isShown := v.resource == "" || v.resource == resource
		if v.object.Name == "" {
			isShown = isShown && isOther
		} else {
			isShown = isShown && (object.Name == "" || object == v.object)
		}
		if !isShown {
			continue
		}
		select {
		case v.changed <- struct{}{}:
		default: // it has not heard of the last change yet
		}
	}
}

// close ends everything, and waits for that.
func (a *audience) close() {
	a.mu.Lock()
	if !a.isClosed() {
		close(a.closed)
	}
	if a.leaving != nil {
		a.leaving.Stop()
	}
	a.end()
	ended := a.ended
	a.mu.Unlock()
	<-ended
}

// isClosed reports whether the page has ended.
func (a *audience) isClosed() bool {
	select {
	case <-a.closed:
		return true
	default:
		return false
	}
}
