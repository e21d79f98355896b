package peering

import (
	"context"
	"slices"
)

// syncMemberships starts and stops memberships, so that there is one per namespace.
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
	ctx, cancel := context.WithCancel(p.ctx)
	started := &membership{leave: cancel}
	if p.notified { // the operator is working already
		started.decided, started.decision = true, decideAlone(p.options.Settings)
	}
	target := Target{Name: p.options.Settings.Name, Namespace: namespace}
	m := newMember(target, p.options, p.find, func(d Decision) { p.setDecision(started, d) })
	p.running.Go(func() {
		defer cancel()
		m.run(ctx)
	})
	return started
}

// setDecision stores the decision of one membership.
func (p *Peering) setDecision(m *membership, d Decision) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m.decided, m.decision = true, d
	p.notifyIfChanged()
}

// notifyIfChanged notifies the operator of the combined decision: once all memberships
// have decided, and only if it differs from the last one.
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
