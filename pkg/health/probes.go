package health

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/internal/handler"
)

// errProbeTimeout reports handlers that have not returned.
var errProbeTimeout = errors.New("the probe handlers did not return in time")

// prober calls the probe handlers, and caches their results. It is safe for
// concurrent use.
type prober struct {
	probes Probes
	ttl    time.Duration // of a cached response, and the time limit of a call
	log    logr.Logger

	mu       sync.Mutex
	last     response
	lastTime time.Time     // zero: never
	running  chan struct{} // closed when the handlers have returned; nil: no call is running
}

// get returns the cached response, or calls the handlers if it has expired: once for
// all concurrent requests. It returns early when the context or the TTL ends.
func (p *prober) get(ctx context.Context) (response, error) {
	p.mu.Lock()
	if p.running == nil && !p.lastTime.IsZero() && time.Since(p.lastTime) < p.ttl {
		defer p.mu.Unlock()
		return p.last, nil
	}
	if p.running == nil {
		p.running = make(chan struct{})
		go p.refresh()
	}
	running := p.running
	p.mu.Unlock()

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

// refresh calls the handlers. It does not use the context of a request: the client
// that came first may disconnect before the handlers return.
func (p *prober) refresh() {
	current := p.callProbes()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = current
	p.lastTime = time.Now()
	close(p.running)
	p.running = nil
}

// callProbes returns a new response. A panic of a handler is an error.
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
		p.log.Error(err, "The probe handlers cannot be called.", handler.StackValues(err)...)
		return errorResponse("the probe handlers cannot be called; see the log for the reason")
	}
	return current
}
