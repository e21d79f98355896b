package configurations

import (
	"bytes"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	wished map[string][]admissionregistrationv1.ValidatingWebhook // last, by the kind of the configuration
	undone bool                                                   // something of others, in this comparison
	pause  time.Duration                                          // until they are looked for again
	quiet  time.Time                                              // until then, nothing of theirs is undone
	said   time.Time
}

// patience is how long to wait for the next comparison.
func (r *rivalry) patience() time.Duration { return max(looking, r.pause) }

// changed tells whether it was somebody else who has made the difference: what we
// wish is what we have wished before.
func (r *rivalry) changed(kind string, wish []admissionregistrationv1.ValidatingWebhook) bool {
	before, known := r.wished[kind]
	return known && same(before, wish)
}

// wish takes note of what the cluster has now.
func (r *rivalry) wish(kind string, webhooks []admissionregistrationv1.ValidatingWebhook) {
	if r.wished == nil {
		r.wished = map[string][]admissionregistrationv1.ValidatingWebhook{}
	}
	r.wished[kind] = webhooks
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
	who := writer(present.object().GetManagedFields())
	log.Info("Somebody else has changed the webhooks of this operator. They are written again. "+
		"If it was another operator, give each of the two its own name in settings.Admission.Managed.", "by", who.Manager, "at", who.Time)
	return true
}

// writer is who has written webhooks last.
func writer(entries []metav1.ManagedFieldsEntry) metav1.ManagedFieldsEntry {
	last := metav1.ManagedFieldsEntry{Manager: "unknown"}
	for _, entry := range entries {
		if entry.FieldsV1 != nil && bytes.Contains(entry.FieldsV1.Raw, []byte(`"f:webhooks"`)) && !entry.Time.Before(last.Time) {
			last = entry
		}
	}
	return last
}
