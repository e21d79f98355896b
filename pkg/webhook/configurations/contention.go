package configurations

import (
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/internal/managedfields"
	"github.com/kopf-go/kopf/pkg/model/object"
)

const (
	// minCheckInterval is how often the configurations are compared without a reason: a
	// person may have changed or removed them, or another operator. It costs two
	// reads.
	minCheckInterval = time.Minute
	// maxCheckInterval is the longest pause while somebody else changes them again and
	// again: two operators must not storm.
	maxCheckInterval = 10 * time.Minute
	// reportInterval is how often somebody else is mentioned in the log.
	reportInterval = 10 * time.Minute
)

// contention is what is known of others who change our webhooks. Manager.writing guards it.
type contention struct {
	// applied is what the cluster had when all was well, by the kind of the configuration.
	applied     map[string]appliedState
	restored    bool          // something of others, in this comparison
	delay       time.Duration // until they are looked for again
	pausedUntil time.Time     // until then, nothing of theirs is undone
	reportedAt  time.Time
}

// appliedState is what a configuration had.
type appliedState struct {
	webhooks []admissionregistrationv1.ValidatingWebhook
	managers []metav1.ManagedFieldsEntry
}

// checkInterval is how long to wait for the next comparison.
func (c *contention) checkInterval() time.Duration { return max(minCheckInterval, c.delay) }

// isChangedByOthers tells whether it was somebody else who has made the difference: what we
// wish is what we have wished before.
func (c *contention) isChangedByOthers(kind string, wish []admissionregistrationv1.ValidatingWebhook) bool {
	before, known := c.applied[kind]
	return known && isEqual(before.webhooks, wish)
}

// recordApplied takes note of what the cluster has now.
func (c *contention) recordApplied(present configuration, wish []admissionregistrationv1.ValidatingWebhook) {
	if c.applied == nil {
		c.applied = map[string]appliedState{}
	}
	c.applied[present.kind()] = appliedState{wish, present.object().GetManagedFields()}
}

// endComparison ends a comparison: the more often something was undone, the longer is the
// pause until the next time.
func (c *contention) endComparison(now time.Time) {
	switch {
	case now.Before(c.pausedUntil):
		return
	case c.restored:
		c.delay = min(2*c.checkInterval(), maxCheckInterval)
		c.pausedUntil = now.Add(c.delay)
	default:
		c.delay /= 2
	}
	c.restored = false
}

// mayRestore tells whether to write over what somebody else has left, and says so.
func (m *Manager) mayRestore(present configuration, removed bool) bool {
	now := time.Now()
	if now.Before(m.contention.pausedUntil) {
		return false
	}
	if !m.contention.reportedAt.IsZero() && now.Sub(m.contention.reportedAt) < reportInterval {
		return true
	}
	m.contention.reportedAt = now
	log := m.logger.WithValues("configuration", m.options.Name, "kind", present.kind())
	if removed {
		log.Info("Somebody has removed the admission configuration of this operator. It is written again.")
		return true
	}
	by, at := "unknown", (*metav1.Time)(nil)
	if last := managedfields.LastWriter(present.object().GetManagedFields(), m.contention.applied[present.kind()].managers, object.Path{"webhooks"}); last != nil {
		by, at = last.Manager, last.Time
	}
	log.Info("Somebody else has changed the webhooks of this operator. They are written again. "+
		"If it was another operator, give each of the two its own name in settings.Admission.Managed.", "by", by, "at", at)
	return true
}
