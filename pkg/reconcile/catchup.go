package reconcile

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kopf-go/kopf/pkg/kopf/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
)

// catchUp is for a standby that begins to work. It has watched all the time, but
// nothing tells whether its watch has brought the last writes of its predecessor:
// a watch can be late, or stuck. The objects are listed once more, without their
// content, and none that has been seen in an older version, or not at all, is
// handled before that version has come or is read; as after a write of its own.
func (e *Engine) catchUp(ctx context.Context) error {
	for _, s := range e.served {
		if s.indexed() {
			continue
		}
		seen := s.all() // before the list: what is not in that is gone, and not new
		versions := map[Key]kube.Version{}
		for _, namespace := range e.namespaces(s) {
			listed, err := s.api.Versions(ctx, namespace)
			if err != nil {
				return fmt.Errorf("%s cannot be listed: %w", s.name, err)
			}
			for name, version := range listed {
				versions[Key{s.name, name}] = version
			}
		}
		for _, snapshot := range seen {
			e.memories.of(s.key(snapshot)).catchUp(snapshot, versions[s.key(snapshot)])
			delete(versions, s.key(snapshot))
		}
		for key, version := range versions {
			e.memories.of(key).raise(version)
		}
	}
	return nil
}

// catchUp compares what the watch has shown with what there is.
func (m *memory) catchUp(seen *object.Snapshot, now kube.Version) {
	m.renew(seen.GetUID())
	m.released = now.UID != seen.GetUID() // it is gone; the watch is about to tell
	if now.UID != "" && now.ResourceVersion != seen.GetResourceVersion() {
		m.raise(now)
	}
}

// raise takes note of a version that the watch has not shown yet.
func (m *memory) raise(now kube.Version) { m.floor, m.floorAt = now.ResourceVersion, time.Now() }

// caughtUp tries until it works, or the operator is stopped: without the API
// nothing can be handled anyway.
func (e *Engine) caughtUp(ctx context.Context) bool {
	return nil == wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		err := e.catchUp(ctx)
		if err != nil {
			e.Logger.Error(err, "It is not known yet what there is to be handled; this will be tried again.")
		}
		return err == nil, nil
	})
}
