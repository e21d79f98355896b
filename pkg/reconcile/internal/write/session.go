package write

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kopf-go/kopf/pkg/internal/relist"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
)

// Session is the writer's part of one pass over one object. It is for one goroutine.
type Session struct {
	writer *Writer
	state  *State
	target Target
	report report.Reporter

	// body is the latest known version, from the watch, a direct read, or the last
	// write.
	body *object.Body
	// changedByOthers is set if others have written to the object since change detection.
	changedByOthers bool
	// statusNotFound is set if a response 404 says that the status is not a subresource. The
	// next write of the status, alone, to the main resource shows whether that is true.
	statusNotFound bool
	// written is what to report when the current attempt to write has succeeded.
	written []func()
}

// Body returns the latest known version of the object, or nil before Refresh.
func (s *Session) Body() *object.Body { return s.body }

// StartDetection marks the session's version as the one that change detection uses.
func (s *Session) StartDetection() { s.changedByOthers = false }

// Freshness is the result of Refresh.
type Freshness struct {
	// Fresh is set if the session's version is not older than the last write.
	Fresh bool
	// WaitFor is how long to wait for the watch. 0 means that the object is gone.
	WaitFor time.Duration
}

// Refresh uses the version of the watch. It reads the object directly if that version is
// older than the last write, or if the operator does not know whether that write was
// committed.
func (s *Session) Refresh(ctx context.Context, cached *object.Snapshot) (Freshness, error) {
	version := cached.GetResourceVersion()
	if s.state.gone {
		if !s.state.isBack(version) {
			return Freshness{}, nil
		}
		s.report.Log.Info("The object counted as deleted, but the watch shows that it exists; it is handled again.", "seen", version)
		s.state.gone = false
	}
	switch {
	case s.state.uncertain:
		return s.ReadLive(ctx)
	case s.state.isStale(version):
		if left := time.Until(s.state.minVersionAt.Add(s.writer.ConsistencyTimeout)); left > 0 {
			return Freshness{WaitFor: left}, nil // the watch will show the last write
		}
		s.report.Log.V(1).Info("The watch is late; the object is read directly.", "expected", s.state.minVersion, "seen", version)
		return s.ReadLive(ctx)
	}
	s.body = cached.Body()
	return Freshness{Fresh: true}, nil
}

// ReadLive reads the object directly.
func (s *Session) ReadLive(ctx context.Context) (Freshness, error) {
	body, err := s.get(ctx)
	if body == nil {
		return Freshness{}, err
	}
	s.body = body
	return Freshness{Fresh: true}, nil
}

// get reads the object directly. It returns nil if the object is gone or was replaced. After
// it, nothing is uncertain.
func (s *Session) get(ctx context.Context) (*object.Body, error) {
	snapshot, err := s.target.API.Get(ctx, s.target.Key.NamespacedName)
	switch {
	case apierrors.IsNotFound(err):
		return nil, s.confirmGone(ctx, err)
	case err != nil:
		return nil, fmt.Errorf("the object cannot be read: %w", err)
	}
	s.checkHistory(snapshot.GetResourceVersion())
	if s.state.uid != "" && snapshot.GetUID() != s.state.uid {
		s.state.markGoneAt(snapshot.GetResourceVersion()) // the watch will show the other object
		return nil, nil
	}
	body := snapshot.Body()
	s.state.confirm(body)
	return body, nil
}

// checkHistory reports that a response of the API server is older than what is known of the object.
func (s *Session) checkHistory(version string) {
	if s.target.Rewound != nil && s.state.minVersion != "" && relist.IsOlder(version, s.state.minVersion) {
		s.target.Rewound()
	}
}
