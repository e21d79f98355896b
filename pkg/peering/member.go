package peering

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/klog/v2"

	"github.com/kopf-go/kopf/pkg/internal/reportonce"
	"github.com/kopf-go/kopf/pkg/settings"
)

// member is this operator in one peering object. Everything except its watch runs in one
// goroutine.
type member struct {
	settings settings.Peering
	identity string
	lease    string
	target   Target
	group    string // the API group of the object
	logger   logr.Logger
	// find finds the peering object.
	find func(ctx context.Context) (peeringAPI, error)
	// isNeeded reports whether the operator has no object in another API group.
	isNeeded func() bool
	// show receives what the member sees, even if nothing has changed.
	show func(view)

	announced atomic.Bool   // the operator has an entry, or should have one
	announces chan struct{} // that has changed

	served       chan struct{} // the resource has appeared
	apis         chan peeringAPI
	states       chan peeringState
	api          peeringAPI // nil: not found yet
	version      string     // of the latest state
	objectExists bool
	mayHaveEntry bool // of this operator
	decided      bool
	decision     Decision
	reports      reportonce.Topics

	renewal     deadlineTimer // the next renewal of the entry
	expiry      deadlineTimer // the first expiry of a peer that pauses this operator
	lastRenewal time.Time
}

// view is the state of the peering object as a member sees it.
type view struct {
	decision Decision
	missing  error // nil: the object exists
}

func newMember(target Target, group string, options Options, find findFunc) *member {
	m := &member{
		settings: options.Settings, identity: options.Identity, lease: options.Lease, target: target, group: group,
		logger:    options.Logger.WithValues("peering", target.Name, "namespace", target.Namespace, "group", group),
		find:      func(ctx context.Context) (peeringAPI, error) { return find(ctx, target, group) },
		announces: make(chan struct{}, 1), served: make(chan struct{}), apis: make(chan peeringAPI), states: make(chan peeringState),
		renewal: newDeadlineTimer(), expiry: newDeadlineTimer(),
	}
	m.announced.Store(!options.Silent)
	return m
}

// run takes part in the peering until the context is done, then leaves it.
func (m *member) run(ctx context.Context) {
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		m.watchObject(klog.NewContext(ctx, m.logger))
	}()
	for ctx.Err() == nil {
		select {
		case m.api = <-m.apis:
			m.version = "" // a restored cluster counts from a lower version
		case s := <-m.states:
			m.handleState(ctx, s)
		case <-m.renewal.C:
			// The response is a fresh view of the peers, so that a watch that is stuck without an
			// error does no lasting harm.
			if state, ok := m.renewEntry(ctx); ok {
				m.handleState(ctx, state)
			}
		case <-m.announces:
			m.followAnnouncement(ctx)
		case <-m.expiry.C:
			m.refresh(ctx)
		case <-ctx.Done():
		}
	}
	<-watched
	m.renewal.cancel()
	m.expiry.cancel()
	m.removeEntry(ctx)
}

// handleState decides by a state of the object, unless a newer one is known: responses to
// writes can be ahead of the watch.
func (m *member) handleState(ctx context.Context, s peeringState) {
	order, unordered := resourceversion.CompareResourceVersion(s.version, m.version)
	isOutdated := unordered == nil && order < 0
	switch {
	case errors.Is(s.err, context.Canceled):
		return
	case IsNotFound(s.err), apierrors.IsForbidden(s.err): // a forbidden object counts as missing
		m.handleMissing(s.err)
		return
	case s.err != nil: // the last decision stands
		m.reportOnce(topicWatch, s.err, "The peering object cannot be watched; this is retried.", "paused", m.decision.Paused, "decided", m.decided)
		return
	case isOutdated:
		return
	}
	m.version = s.version
	if s.status == nil {
		m.handleMissing(m.target.notFound(m.group, false))
		return
	}
	m.reports.Clear(topicWatch)
	m.reports.Clear(topicExpiry)

	// Write the entry before the first decision: peers must know of the operator before it starts
	// to work.
	if !m.objectExists {
		m.objectExists = true
		if m.announced.Load() {
			if state, ok := m.renewEntry(ctx); ok {
				s = state
				m.version = state.version
			}
		}
	}

	// Decide by the entries. Former leaders among the replicas of this operator are dead.
	now := time.Now()
	records, invalid := Parse(s.status)
	m.reportInvalidEntries(invalid)
	for peer, record := range records {
		if m.lease != "" && record.Lease == m.lease && peer != m.identity {
			record.LastSeen = now
			record.Lifetime = 0
			records[peer] = record
		}
	}
	d := Decide(records, m.identity, m.settings.Priority, now)
	m.publish(view{decision: d})
	m.expiry.set(d.Until)
	if !m.announced.Load() {
		return
	}

	// Renew the entry if the object has none of this operator, or an expired one. Do not write at
	// once after a write: a peer whose clock is far ahead may remove the entry each time, and a
	// schema may drop it.
	if own, exists := records[m.identity]; !exists || own.IsDead(now) {
		soon := m.lastRenewal.Add(m.renewalMargin())
		if m.renewal.deadline.IsZero() || soon.Before(m.renewal.deadline) {
			m.renewal.set(soon)
		}
	}
	m.prune(ctx, s, d.Dead)
}

// announce makes the entry of the operator, or removes it. It does not wait.
func (m *member) announce(announced bool) {
	m.announced.Store(announced)
	select {
	case m.announces <- struct{}{}:
	default: // the last change is not followed yet
	}
}

// followAnnouncement does what announce has requested, if the object is known. Otherwise, the first state does it.
func (m *member) followAnnouncement(ctx context.Context) {
	if !m.objectExists {
		return
	}
	if !m.announced.Load() {
		m.renewal.set(time.Time{})
		m.removeEntry(ctx)
		m.mayHaveEntry = false
		return
	}
	if state, ok := m.renewEntry(ctx); ok {
		m.handleState(ctx, state)
	}
}

func (m *member) publish(v view) {
	m.decided = true
	m.decision = v.decision
	m.show(v)
}

// deadlineTimer is a timer that knows its deadline.
type deadlineTimer struct {
	*time.Timer
	deadline time.Time // zero: the timer is not set
}

func newDeadlineTimer() deadlineTimer {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return deadlineTimer{Timer: timer}
}

// set sets the timer, which fires at once if the deadline is over. The zero time
// cancels it.
func (t *deadlineTimer) set(deadline time.Time) {
	t.deadline = deadline
	if deadline.IsZero() {
		t.Stop()
		return
	}
	t.Reset(time.Until(deadline))
}

func (t *deadlineTimer) cancel() { t.set(time.Time{}) }
