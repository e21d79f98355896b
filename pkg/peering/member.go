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
	// locate finds the peering object.
	locate func(ctx context.Context, target Target) (place, error)
	// tell takes the decisions, those that change nothing included.
	tell func(Decision)

	places   chan place
	sights   chan sight
	place    place  // nil: not found yet
	version  string // of the newest sight
	present  bool   // the object is there
	entered  bool   // there can be an entry of ours
	decided  bool
	decision Decision
	said     map[string]string // what was complained of last, by subject

	renewal alarm // when to give the next sign of life
	expiry  alarm // when a peer that pauses us is dead
	renewed time.Time
}

func newMember(target Target, options Options, locate func(context.Context, Target) (place, error), tell func(Decision)) *member {
	return &member{
		settings: options.Settings, identity: options.Identity, lease: options.Lease, target: target,
		logger: options.Logger.WithValues("peering", target.Name, "namespace", target.Namespace),
		locate: locate, tell: tell,
		places: make(chan place), sights: make(chan sight), said: map[string]string{},
		renewal: newAlarm(), expiry: newAlarm(),
	}
}

// run takes part in the peering until the context is done, and leaves it.
func (m *member) run(ctx context.Context) {
	observed := make(chan struct{})
	go func() {
		defer close(observed)
		m.observe(klog.NewContext(ctx, m.logger))
	}()
	for ctx.Err() == nil {
		select {
		case m.place = <-m.places:
			m.version = "" // those of another group do not compare
		case s := <-m.sights:
			m.look(ctx, s)
		case <-m.renewal.C:
			m.keepAlive(ctx)
		case <-m.expiry.C:
			m.reread(ctx)
		case <-ctx.Done():
		}
	}
	<-observed
	m.renewal.cancel()
	m.expiry.cancel()
	m.leave(ctx)
}

// look takes note of what has been seen, unless something newer was seen before:
// the answers to writes can be ahead of the watch.
func (m *member) look(ctx context.Context, s sight) {
	switch {
	case s.err != nil:
		m.troubled(s.err)
	case m.outdated(s.version):
	case s.status == nil:
		m.version = s.version
		m.missing(m.target.absent(false))
	default:
		m.version = s.version
		m.found(ctx, s)
	}
}

func (m *member) outdated(version string) bool {
	order, err := resourceversion.CompareResourceVersion(version, m.version)
	return err == nil && order < 0
}

// found is when the object is there. Before the operator begins to work, it tells
// the others that it is here.
func (m *member) found(ctx context.Context, s sight) {
	m.recovered(seeing)
	m.recovered(checking)
	m.recovered(meeting)
	if !m.present {
		m.present = true
		if answer, ok := m.renew(ctx); ok {
			s, m.version = answer, answer.version
		}
	}
	m.judge(ctx, s)
}

// judge decides by the entries, and sees to what follows from them.
func (m *member) judge(ctx context.Context, s sight) {
	now := time.Now()
	records, broken := Parse(s.status)
	m.complain(broken)
	m.succeed(records, now)
	d := Decide(records, m.identity, m.settings.Priority, now)
	m.conclude(d)
	m.expiry.set(d.Until)
	if own, there := records[m.identity]; !there || own.IsDead(now) {
		m.reenter()
	}
	m.bury(ctx, s, d.Dead)
}

// succeed declares the former leaders of our own replicas dead.
func (m *member) succeed(records map[string]Record, now time.Time) {
	for peer, record := range records {
		if m.lease != "" && record.Lease == m.lease && peer != m.identity {
			record.LastSeen, record.Lifetime = now, 0
			records[peer] = record
		}
	}
}
