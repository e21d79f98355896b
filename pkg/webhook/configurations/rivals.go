package configurations

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/internal/contention"
	"github.com/kopf-go/kopf/pkg/internal/managedfields"
	"github.com/kopf-go/kopf/pkg/model/object"
)

const (
	// checkInterval is how often the configurations are compared when nothing has
	// changed: a person or another operator may have changed or deleted them. A
	// comparison costs two reads.
	checkInterval = time.Minute
	// maxPause is the longest pause while another client changes them again
	// and again: two operators must not flood the API server.
	maxPause = 10 * time.Minute
	// reportInterval is how often changes by another client are logged.
	reportInterval = 10 * time.Minute
)

// rivalRule is how the operator restores what another client keeps changing. A comparison shows only
// the last change, so each one is followed by a pause.
var rivalRule = contention.Rule{Delays: []time.Duration{2 * checkInterval, 4 * checkInterval, 8 * checkInterval, maxPause}}

// rivals tracks changes of our webhooks, or of the conversion of one definition, by other clients. writer.mu
// guards it.
type rivals struct {
	// applied is the state of the cluster after the last write or comparison, by the kind of
	// the object.
	applied    map[string]appliedState
	restored   bool             // this comparison has restored something
	changes    contention.Count // how many comparisons have
	reportedAt time.Time
}

// appliedState is the state of one object: our part of it, and the owners of its fields.
type appliedState struct {
	content  any
	managers []metav1.ManagedFieldsEntry
}

// recordApplied records what the cluster has now.
func (r *rivals) recordApplied(kind string, present client.Object, content any) {
	if r.applied == nil {
		r.applied = map[string]appliedState{}
	}
	r.applied[kind] = appliedState{content, present.GetManagedFields()}
}

// isApplied reports whether the cluster had the content after the last write or comparison: what differs from it
// now is a change of another client.
func (r *rivals) isApplied(kind string, content any) bool {
	before, known := r.applied[kind]
	return known && isEqual(before.content, content)
}

// yields reports whether the change of another client may be overwritten now, and whether that must be logged.
func (r *rivals) yields(now time.Time) (mayRestore, report bool) {
	if r.changes.Left(rivalRule, now) > 0 {
		return false, false
	}
	if !r.reportedAt.IsZero() && now.Sub(r.reportedAt) < reportInterval {
		return true, false
	}
	r.reportedAt = now
	return true, true
}

// mayRestore reports whether the change of another client may be overwritten now, and
// logs the change.
func (w *writer) mayRestore(present configuration, deleted bool) bool {
	allowed, report := w.rivals.yields(time.Now())
	if !report {
		return allowed
	}
	log := w.logger.WithValues("configuration", w.options.Name, "kind", present.kind())
	if deleted {
		log.Info("Another client has deleted the admission configuration of this operator. It is created again.")
		return true
	}
	by := "unknown"
	at := (*metav1.Time)(nil)
	if last := managedfields.LastWriter(present.object().GetManagedFields(), w.rivals.applied[present.kind()].managers, object.Path{"webhooks"}); last != nil {
		by = last.Manager
		at = last.Time
	}
	log.Info("Another client has changed the webhooks of this operator. They are restored. "+
		"If the client is another operator, set another name in Settings.Admission.Managed of one of the two.", "by", by, "at", at)
	return true
}
