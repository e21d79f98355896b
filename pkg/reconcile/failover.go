package reconcile

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
)

// catchUp prepares a standby replica for work. Although it has watched all the time, its
// watch may be late or stuck, and may not have shown the last writes of its predecessor.
// So catchUp lists the versions of the objects without their content. An object that the
// watch has shown in an older version, or not at all, is handled only after the listed
// version is seen or read, as after the operator's own writes.
//
// It retries until it succeeds or the operator stops, because nothing can be handled
// without the API server.
func (e *Engine) catchUp(ctx context.Context) bool {
	return nil == wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		err := e.compareVersions(ctx)
		if err != nil {
			e.Logger.Error(err, "The objects cannot be compared with the cluster yet; this will be retried.")
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

// catchUp compares the version of the watch with the current version.
func (s *objectState) catchUp(seen *object.Snapshot, now kube.Version) {
	if seen == nil { // the object is new
		s.writes.NotOlderThan(now.ResourceVersion)
		return
	}
	s.resetFor(seen.GetUID())
	s.writes.SeenGone(now.UID != seen.GetUID()) // the watch will show its deletion
	if now.UID != "" {
		s.writes.NotOlderThan(now.ResourceVersion)
	}
}
