package peering

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/klog/v2"

	"github.com/kopf-go/kopf/pkg/settings"
)

// member is this operator in one peering. All but its watch runs in one goroutine.
type member struct {
	settings settings.Peering
	identity string
	lease    string
	target   Target
	logger   logr.Logger
	// find finds the peering object.
	find func(ctx context.Context, target Target) (peeringAPI, error)
	// notify takes the decisions, those that change nothing included.
	notify func(Decision)

	apis         chan peeringAPI
	states       chan peeringState
	api          peeringAPI // nil: not found yet
	version      string     // of the newest sight
	objectExists bool       // the object is there
	mayHaveEntry bool       // there can be an entry of ours
	decided      bool
	decision     Decision
	reported     map[string]string // what was complained of last, by subject

	renewal     deadlineTimer // when to give the next sign of life
	expiry      deadlineTimer // when a peer that pauses us is dead
	lastRenewal time.Time
}

func newMember(target Target, options Options, locate func(context.Context, Target) (peeringAPI, error), tell func(Decision)) *member {
	return &member{
		settings: options.Settings, identity: options.Identity, lease: options.Lease, target: target,
		logger: options.Logger.WithValues("peering", target.Name, "namespace", target.Namespace),
		find:   locate, notify: tell,
		apis: make(chan peeringAPI), states: make(chan peeringState), reported: map[string]string{},
		renewal: newDeadlineTimer(), expiry: newDeadlineTimer(),
	}
}

// run takes part in the peering until the context is done, and leaves it.
func (m *member) run(ctx context.Context) {
	observed := make(chan struct{})
	go func() {
		defer close(observed)
		m.watchObject(klog.NewContext(ctx, m.logger))
	}()
	for ctx.Err() == nil {
		select {
		case m.api = <-m.apis:
			m.version = "" // those of another group do not compare
		case s := <-m.states:
			m.handleState(ctx, s)
		case <-m.renewal.C:
			m.keepAlive(ctx)
		case <-m.expiry.C:
			m.refresh(ctx)
		case <-ctx.Done():
		}
	}
	<-observed
	m.renewal.cancel()
	m.expiry.cancel()
	m.removeEntry(ctx)
}

// handleState takes note of what has been seen, unless something newer was seen before:
// the answers to writes can be ahead of the watch.
func (m *member) handleState(ctx context.Context, s peeringState) {
	switch {
	case s.err != nil:
		m.handleError(s.err)
	case m.isOutdated(s.version):
	case s.status == nil:
		m.version = s.version
		m.handleMissing(m.target.notFound(false))
	default:
		m.version = s.version
		m.handlePresent(ctx, s)
	}
}

func (m *member) isOutdated(version string) bool {
	order, err := resourceversion.CompareResourceVersion(version, m.version)
	return err == nil && order < 0
}

// handlePresent is when the object is there. Before the operator begins to work, it tells
// the others that it is here.
func (m *member) handlePresent(ctx context.Context, s peeringState) {
	m.clearReport(topicWatch)
	m.clearReport(topicExpiry)
	m.clearReport(topicObject)
	if !m.objectExists {
		m.objectExists = true
		if answer, ok := m.renewEntry(ctx); ok {
			s, m.version = answer, answer.version
		}
	}
	m.evaluate(ctx, s)
}

// evaluate decides by the entries, and sees to what follows from them.
func (m *member) evaluate(ctx context.Context, s peeringState) {
	now := time.Now()
	records, broken := Parse(s.status)
	m.reportInvalidEntries(broken)
	m.expireFormerLeaders(records, now)
	d := Decide(records, m.identity, m.settings.Priority, now)
	m.applyDecision(d)
	m.expiry.set(d.Until)
	if own, there := records[m.identity]; !there || own.IsDead(now) {
		m.renewSoon()
	}
	m.prune(ctx, s, d.Dead)
}

// expireFormerLeaders declares the former leaders of our own replicas dead.
func (m *member) expireFormerLeaders(records map[string]Record, now time.Time) {
	for peer, record := range records {
		if m.lease != "" && record.Lease == m.lease && peer != m.identity {
			record.LastSeen, record.Lifetime = now, 0
			records[peer] = record
		}
	}
}
