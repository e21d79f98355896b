package reconcile

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
)

// catchUp is for a standby that begins to work. It has watched all the time, but its
// watch may not have shown the last writes of its predecessor: a watch can be late, or
// stuck. The objects are listed once more, without their content, and none that was
// seen in an older version, or not at all, is handled before that version was seen or
// read; as after a write of its own.
//
// It retries until it succeeds, or the operator stops: without the API nothing can be
// handled anyway.
func (e *Engine) catchUp(ctx context.Context) bool {
	return nil == wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		err := e.compareVersions(ctx)
		if err != nil {
			e.Logger.Error(err, "It is not known yet which objects must be handled; this will be retried.")
		}
		return err == nil, nil
	})
}

func (e *Engine) compareVersions(ctx context.Context) error {
	for _, r := range e.resources.all() {
		if r.isIndexedOnly() {
			continue
		}
		versions, err := r.Versions(ctx)
		if err != nil {
			return err
		}
		for _, v := range versions {
			e.objects.of(v.Key).catchUp(v.Seen, v.Now)
		}
	}
	return nil
}

// catchUp compares what the watch has shown with what there is.
func (s *objectState) catchUp(seen *object.Snapshot, now kube.Version) {
	if seen == nil { // a new object
		s.writes.NotOlderThan(now.ResourceVersion)
		return
	}
	s.resetFor(seen.GetUID())
	s.writes.SeenGone(now.UID != seen.GetUID()) // the watch is about to show its end
	if now.UID != "" && now.ResourceVersion != seen.GetResourceVersion() {
		s.writes.NotOlderThan(now.ResourceVersion)
	}
}
