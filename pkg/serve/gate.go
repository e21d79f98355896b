package serve

import (
	"context"
	"errors"
	"sync"

	handlers "github.com/kopf-go/kopf/internal/handler" // the name is taken here
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/serve/protocol"
)

// gate lets calls in until it is closed. The zero gate is open.
type gate struct {
	mu     sync.Mutex
	inside int
	closed bool
	locked bool          // it stays closed
	empty  chan struct{} // closed when the last call has left a closed gate
	opened chan struct{} // closed when the gate opens again, or is locked
}

// errLocked means that a call has come too late.
var errLocked = errors.New("the operator ends for its changed files: the next one makes the call")

// enter waits until the gate is open. The context of a call ends with the operator.
func (g *gate) enter(ctx context.Context) error {
	for {
		g.mu.Lock()
		if g.locked {
			g.mu.Unlock()
			return errLocked
		}
		if !g.closed {
			g.inside++
			g.mu.Unlock()
			return nil
		}
		opened := g.opened
		g.mu.Unlock()
		select {
		case <-opened:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.closed && g.inside == 0 {
		close(g.empty)
	}
}

// lock turns calls away that wait at a closed gate, and those that come.
func (g *gate) lock() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed && !g.locked {
		g.locked = true
		close(g.opened)
	}
}

// close closes the gate, and waits until no call is inside.
func (g *gate) close(ctx context.Context) error {
	g.mu.Lock()
	g.closed = true
	g.empty = make(chan struct{})
	g.opened = make(chan struct{})
	if g.inside == 0 {
		close(g.empty)
	}
	empty := g.empty
	g.mu.Unlock()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		g.mu.Lock()
		defer g.mu.Unlock()
		g.closed = false
		close(g.opened)
		return context.Cause(ctx)
	}
}

// isGated reports whether a call does not begin when the operator is about to end for its changed files. An index is lost then
// anyway, and everything else waits for it. The API servers wait for reviews, and so do the writes of calls that run.
func isGated(made *protocol.Call) bool {
	switch made.Kind {
	case protocol.Index, protocol.Validate, protocol.Mutate:
		return false
	default:
		return made.Resource != nil
	}
}

// enter lets a call begin. One that comes too late does not count as an attempt: the next operator makes it.
func (p *Program) enter(ctx context.Context, kind protocol.Kind) error {
	switch err := p.gate.enter(ctx); {
	case !errors.Is(err, errLocked):
		return err
	case kind == protocol.Timer || kind == protocol.Event: // nothing is recorded of their attempts
		return kopf.Temporary(err, 0)
	default:
		return &handlers.Interruption{Err: handlers.ErrCanceled}
	}
}
