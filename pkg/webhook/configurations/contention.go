package configurations

import (
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/internal/managedfields"
	"github.com/kopf-go/kopf/pkg/model/object"
)

const (
	// minCheckInterval is how often the configurations are compared when nothing has
	// changed: a person or another operator may have changed or deleted them. A
	// comparison costs two reads.
	minCheckInterval = time.Minute
	// maxCheckInterval is the longest pause while another client changes them again
	// and again: two operators must not flood the API server.
	maxCheckInterval = 10 * time.Minute
	// reportInterval is how often changes by another client are logged.
	reportInterval = 10 * time.Minute
)

// contention tracks changes of our webhooks by other clients. writer.mu guards it.
type contention struct {
	// applied is the state of the cluster after the last write or comparison, by the kind of
	// the configuration.
	applied     map[string]appliedState
	restored    bool          // this comparison has restored something
	delay       time.Duration // until the next comparison
	pausedUntil time.Time     // nothing is restored before
	reportedAt  time.Time
}

// appliedState is the state of one configuration.
type appliedState struct {
	webhooks []admissionregistrationv1.ValidatingWebhook
	managers []metav1.ManagedFieldsEntry
}

// interval returns the time until the next comparison.
func (c *contention) interval() time.Duration { return max(minCheckInterval, c.delay) }

// isChangedByOthers reports whether a difference from what the operator wants is a
// change by another client: the operator itself still wants the same as before.
func (c *contention) isChangedByOthers(kind string, want []admissionregistrationv1.ValidatingWebhook) bool {
	before, known := c.applied[kind]
	return known && isEqual(before.webhooks, want)
}

// recordApplied records what the cluster has now.
func (c *contention) recordApplied(present configuration, webhooks []admissionregistrationv1.ValidatingWebhook) {
	if c.applied == nil {
		c.applied = map[string]appliedState{}
	}
	c.applied[present.kind()] = appliedState{webhooks, present.object().GetManagedFields()}
}

// endComparison computes the time until the next comparison: the more often something
// was restored, the longer.
func (c *contention) endComparison(now time.Time) {
	switch {
	case now.Before(c.pausedUntil):
		return
	case c.restored:
		c.delay = min(2*c.interval(), maxCheckInterval)
		c.pausedUntil = now.Add(c.delay)
	default:
		c.delay /= 2
	}
	c.restored = false
}

// mayRestore reports whether the change of another client may be overwritten now, and
// logs the change.
func (w *writer) mayRestore(present configuration, deleted bool) bool {
	now := time.Now()
	if now.Before(w.contention.pausedUntil) {
		return false
	}
	if !w.contention.reportedAt.IsZero() && now.Sub(w.contention.reportedAt) < reportInterval {
		return true
	}
	w.contention.reportedAt = now
	log := w.logger.WithValues("configuration", w.options.Name, "kind", present.kind())
	if deleted {
		log.Info("Another client has deleted the admission configuration of this operator. It is created again.")
		return true
	}
	by := "unknown"
	at := (*metav1.Time)(nil)
	if last := managedfields.LastWriter(present.object().GetManagedFields(), w.contention.applied[present.kind()].managers, object.Path{"webhooks"}); last != nil {
		by = last.Manager
		at = last.Time
	}
	log.Info("Another client has changed the webhooks of this operator. They are restored. "+
		"If the client is another operator, set another name in Settings.Admission.Managed of one of the two.", "by", by, "at", at)
	return true
}
