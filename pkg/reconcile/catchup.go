package reconcile

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
)

// catchUp is for a standby that begins to work. It has watched all the time, but
// nothing tells whether its watch has brought the last writes of its predecessor:
// a watch can be late, or stuck. The objects are listed once more, without their
// content, and none that has been seen in an older version, or not at all, is
// handled before that version has come or is read; as after a write of its own.
func (e *Engine) catchUp(ctx context.Context) error {
	for _, s := range e.served.all() {
		if s.indexed() {
			continue
		}
		for _, w := range s.streams.all() {
			if err := e.catchUpWith(ctx, s, w); err != nil {
				return err
			}
		}
	}
	return nil
}

// catchUpWith does so for one watch. One that has gone meanwhile has nothing to
// be handled. One that is begun later lists what there is then.
func (e *Engine) catchUpWith(ctx context.Context, s *served, w *stream) error {
	seen := w.all() // before the list: what is not in that is gone, and not new
	versions, err := s.api.ListVersions(ctx, w.namespace)
	switch {
	case err != nil && w.gone(err):
		return nil
	case err != nil:
		return fmt.Errorf("%s cannot be listed: %w", s.name, err)
	}
	for _, snapshot := range seen {
		key := s.key(snapshot)
		e.memories.of(key).catchUp(snapshot, versions[key.NamespacedName])
		delete(versions, key.NamespacedName)
	}
	for name, version := range versions {
		e.memories.of(object.Key{Resource: s.name, NamespacedName: name}).raise(version)
	}
	return nil
}

// gone tells whether there is nothing to catch up with: the resource was removed,
// or the watch was stopped, or it has never shown anything.
func (w *stream) gone(err error) bool {
	select {
	case <-w.left:
		return true
	default:
		return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) && !w.listening.HasSynced()
	}
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
