package health

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/pkg/model/handler"
)

// errLate is all that there is to say of handlers that have not returned.
var errLate = errors.New("the probe handlers have not returned in time")

// prober calls the probe handlers, and keeps what they return for a while. It is
// safe for concurrent use.
type prober struct {
	call Probes
	age  time.Duration // for which an answer is kept, and for which it is waited
	log  logr.Logger

	mu      sync.Mutex
	last    answer
	at      time.Time     // zero: never
	running chan struct{} // closed when the handlers have returned; nil: nobody calls them
}

// ask returns the last answer, or calls the handlers if that is too old: once,
// however many ask meanwhile. Nobody waits longer than he wants to, or than the
// handlers should take.
func (p *prober) ask(ctx context.Context) (answer, error) {
	last, running := p.latest()
	if running == nil {
		return last, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.age, errLate)
	defer cancel()
	select {
	case <-running:
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.last, nil
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	}
}

// latest is the last answer, or nothing and when there is a new one.
func (p *prober) latest() (last answer, running <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.running != nil:
		return answer{}, p.running
	case !p.at.IsZero() && time.Since(p.at) < p.age:
		return p.last, nil
	}
	p.running = make(chan struct{})
	go p.renew()
	return answer{}, p.running
}

// renew calls the handlers. It belongs to no request: who has asked first may be
// gone before they return.
func (p *prober) renew() {
	current := p.probe()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last, p.at = current, time.Now()
	close(p.running)
	p.running = nil
}

func (p *prober) probe() answer {
	if p.call == nil {
		return reported(nil, nil)
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), p.age, errLate)
	defer cancel()
	var current answer
	err := handler.WithRecover(func() error {
		current = reported(p.call(ctx))
		return nil
	})
	if err != nil {
		p.log.Error(err, "The probes cannot be made.", handler.StackValues(err)...)
		return failure("the probes cannot be made; the log tells why")
	}
	return current
}
