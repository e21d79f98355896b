package health

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/pkg/model/handler"
)

// errProbeTimeout is all that there is to say of handlers that have not returned.
var errProbeTimeout = errors.New("the probe handlers have not returned in time")

// prober calls the probe handlers, and keeps what they return for a while. It is
// safe for concurrent use.
type prober struct {
	probes Probes
	ttl    time.Duration // for which an answer is kept, and for which it is waited
	log    logr.Logger

	mu       sync.Mutex
	last     response
	lastTime time.Time     // zero: never
	running  chan struct{} // closed when the handlers have returned; nil: nobody calls them
}

// get returns the last answer, or calls the handlers if that is too old: once,
// however many ask meanwhile. Nobody waits longer than he wants to, or than the
// handlers should take.
func (p *prober) get(ctx context.Context) (response, error) {
	last, running := p.cached()
	if running == nil {
		return last, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.ttl, errProbeTimeout)
	defer cancel()
	select {
	case <-running:
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.last, nil
	case <-ctx.Done():
		return response{}, context.Cause(ctx)
	}
}

// cached is the last answer, or nothing and when there is a new one.
func (p *prober) cached() (last response, running <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.running != nil:
		return response{}, p.running
	case !p.lastTime.IsZero() && time.Since(p.lastTime) < p.ttl:
		return p.last, nil
	}
	p.running = make(chan struct{})
	go p.refresh()
	return response{}, p.running
}

// refresh calls the handlers. It belongs to no request: who has asked first may be
// gone before they return.
func (p *prober) refresh() {
	current := p.callProbes()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last, p.lastTime = current, time.Now()
	close(p.running)
	p.running = nil
}

func (p *prober) callProbes() response {
	if p.probes == nil {
		return probeResponse(nil, nil)
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), p.ttl, errProbeTimeout)
	defer cancel()
	var current response
	err := handler.WithRecover(func() error {
		current = probeResponse(p.probes(ctx))
		return nil
	})
	if err != nil {
		p.log.Error(err, "The probes cannot be made.", handler.StackValues(err)...)
		return errorResponse("the probes cannot be made; the log tells why")
	}
	return current
}
