package configurations

import (
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/internal/managedfields"
	"github.com/kopf-go/kopf/pkg/model/object"
)

const (
	// looking is how often the configurations are compared without a reason: a
	// person may have changed or removed them, or another operator. It costs two
	// reads.
	looking = time.Minute
	// lastLooking is the longest pause while somebody else changes them again and
	// again: two operators must not storm.
	lastLooking = 10 * time.Minute
	// saying is how often somebody else is mentioned in the log.
	saying = 10 * time.Minute
)

// rivalry is what is known of others who change our webhooks. Manager.writing guards it.
type rivalry struct {
	// last is what the cluster had when all was well, by the kind of the configuration.
	last   map[string]state
	undone bool          // something of others, in this comparison
	pause  time.Duration // until they are looked for again
	quiet  time.Time     // until then, nothing of theirs is undone
	said   time.Time
}

// state is what a configuration had.
type state struct {
	wish    []admissionregistrationv1.ValidatingWebhook
	writers []metav1.ManagedFieldsEntry
}

// patience is how long to wait for the next comparison.
func (r *rivalry) patience() time.Duration { return max(looking, r.pause) }

// changed tells whether it was somebody else who has made the difference: what we
// wish is what we have wished before.
func (r *rivalry) changed(kind string, wish []admissionregistrationv1.ValidatingWebhook) bool {
	before, known := r.last[kind]
	return known && same(before.wish, wish)
}

// brought takes note of what the cluster has now.
func (r *rivalry) brought(present configuration, wish []admissionregistrationv1.ValidatingWebhook) {
	if r.last == nil {
		r.last = map[string]state{}
	}
	r.last[present.kind()] = state{wish, present.object().GetManagedFields()}
}

// compared ends a comparison: the more often something was undone, the longer is the
// pause until the next time.
func (r *rivalry) compared(now time.Time) {
	switch {
	case now.Before(r.quiet):
		return
	case r.undone:
		r.pause = min(2*r.patience(), lastLooking)
		r.quiet = now.Add(r.pause)
	default:
		r.pause /= 2
	}
	r.undone = false
}

// undo tells whether to write over what somebody else has left, and says so.
func (m *Manager) undo(present configuration, removed bool) bool {
	now := time.Now()
	if now.Before(m.rivals.quiet) {
		return false
	}
	if !m.rivals.said.IsZero() && now.Sub(m.rivals.said) < saying {
		return true
	}
	m.rivals.said = now
	log := m.logger.WithValues("configuration", m.options.Name, "kind", present.kind())
	if removed {
		log.Info("Somebody has removed the admission configuration of this operator. It is written again.")
		return true
	}
	by, at := "unknown", (*metav1.Time)(nil)
	if last := managedfields.LastWriter(present.object().GetManagedFields(), m.rivals.last[present.kind()].writers, object.Path{"webhooks"}); last != nil {
		by, at = last.Manager, last.Time
	}
	log.Info("Somebody else has changed the webhooks of this operator. They are written again. "+
		"If it was another operator, give each of the two its own name in settings.Admission.Managed.", "by", by, "at", at)
	return true
}
