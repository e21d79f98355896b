package peering

import (
	"context"
	"slices"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/pkg/internal/reportonce"
	"github.com/kopf-go/kopf/pkg/settings"
)

// membership is the participation of an operator in the peering of a namespace, or of the
// cluster. It has a member in each API group. The Peering locks it.
type membership struct {
	settings settings.Peering
	logger   logr.Logger
	leave    context.CancelFunc

	members      []*member       // of all API groups
	views        map[string]view // by API group; a member that knows nothing yet has none
	objectExists bool            // in any group
	decided      bool
	decision     Decision
	reports      reportonce.Topics
}

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
	target := Target{Name: p.options.Settings.Name, Namespace: namespace}
	started := &membership{
		settings: p.options.Settings, leave: cancel, views: map[string]view{},
		logger: p.options.Logger.WithValues("peering", target.Name, "namespace", target.Namespace),
	}
	if p.notified { // the operator is working already
		started.decided = true
		started.decision = decideAlone(p.options.Settings)
	}
	for _, group := range groups() {
		m := newMember(target, group, p.options, p.find)
		m.announced.Store(p.announced)
		m.isNeeded = func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return !started.objectExists
		}
		m.show = func(v view) {
			p.mu.Lock()
			defer p.mu.Unlock()
			started.views[group] = v
			if len(started.views) == len(groups()) {
				started.evaluate()
				p.notifyIfChanged()
			}
		}
		started.members = append(started.members, m)
		p.running.Go(func() { m.run(ctx) })
	}
	return started
}

// decideAlone returns the decision without a peering object.
func decideAlone(s settings.Peering) Decision {
	if s.Mandatory {
		return Decision{Paused: true, Reason: ReasonObjectMissing}
	}
	return Decision{}
}

// evaluate decides by what the members of all API groups see.
func (m *membership) evaluate() {
	var decisions []Decision
	var missing []error
	for _, group := range groups() {
		v := m.views[group]
		decisions = append(decisions, v.decision)
		if v.missing != nil {
			missing = append(missing, v.missing)
		}
	}
	d := combine(decisions)
	if len(missing) == len(decisions) {
		d = decideAlone(m.settings)
		m.reportMissing(chooseMissing(missing))
	} else {
		m.reports.Clear(topicObject)
		m.reportForbidden()
	}
	m.objectExists = len(missing) < len(decisions)
	if before := m.decision; !m.decided || !d.equal(before) {
		m.logDecision(d, before)
	}
	m.decided = true
	m.decision = d
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
	p.notified = true
	p.paused = paused
	p.options.Notify(paused)
}
