package peering

import (
	"context"
	"slices"
)

// adjust starts and stops parts, so that there is one for every namespace.
func (p *Peering) adjust() {
	if p.ctx == nil || p.ctx.Err() != nil || p.options.Settings.Standalone {
		return
	}
	for _, namespace := range p.options.Namespaces {
		if p.parts[namespace] == nil {
			p.parts[namespace] = p.start(namespace)
		}
	}
	for namespace, part := range p.parts {
		if !slices.Contains(p.options.Namespaces, namespace) {
			part.stop()
			delete(p.parts, namespace)
		}
	}
}

func (p *Peering) start(namespace string) *part {
	ctx, stop := context.WithCancel(p.ctx)
	started := &part{stop: stop}
	if p.told { // the operator works already
		started.decided, started.decision = true, alone(p.options.Settings)
	}
	target := Target{Name: p.options.Settings.Name, Namespace: namespace}
	m := newMember(target, p.options, p.locate, func(d Decision) { p.decide(started, d) })
	p.running.Go(func() {
		defer stop()
		m.run(ctx)
	})
	return started
}

// decide takes the decision of one part.
func (p *Peering) decide(of *part, d Decision) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of.decided, of.decision = true, d
	p.announce()
}

// announce tells the operator what follows from all parts together, as soon as
// that is known of all, and if it is something new.
func (p *Peering) announce() {
	paused := false
	for _, part := range p.parts {
		if !part.decided {
			return
		}
		paused = paused || part.decision.Paused
	}
	if p.ctx == nil || p.told && p.paused == paused {
		return
	}
	p.told, p.paused = true, paused
	p.options.Notify(paused)
}
