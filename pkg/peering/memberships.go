package peering

import (
	"context"
	"slices"
)

// syncMemberships starts and stops parts, so that there is one for every namespace.
func (p *Peering) syncMemberships() {
	if p.ctx == nil || p.ctx.Err() != nil || p.options.Settings.Standalone {
		return
	}
	for _, namespace := range p.options.Namespaces {
		if p.memberships[namespace] == nil {
			p.memberships[namespace] = p.startMembership(namespace)
		}
	}
	for namespace, m := range p.memberships {
		if !slices.Contains(p.options.Namespaces, namespace) {
			m.leave()
			delete(p.memberships, namespace)
		}
	}
}

func (p *Peering) startMembership(namespace string) *membership {
	ctx, stop := context.WithCancel(p.ctx)
	started := &membership{leave: stop}
	if p.notified { // the operator works already
		started.decided, started.decision = true, decideAlone(p.options.Settings)
	}
	target := Target{Name: p.options.Settings.Name, Namespace: namespace}
	m := newMember(target, p.options, p.find, func(d Decision) { p.setDecision(started, d) })
	p.running.Go(func() {
		defer stop()
		m.run(ctx)
	})
	return started
}

// setDecision takes the decision of one m.
func (p *Peering) setDecision(of *membership, d Decision) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of.decided, of.decision = true, d
	p.notifyIfChanged()
}

// notifyIfChanged tells the operator what follows from all parts together, as soon as
// that is known of all, and if it is something new.
func (p *Peering) notifyIfChanged() {
	paused := false
	for _, m := range p.memberships {
		if !m.decided {
			return
		}
		paused = paused || m.decision.Paused
	}
	if p.ctx == nil || p.notified && p.paused == paused {
		return
	}
	p.notified, p.paused = true, paused
	p.options.Notify(paused)
}
