package write

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
	// watched is the version of the watch with which the pass began.
	watched string
	// aheadOfWatch is set if the last direct read has shown a later one.
	aheadOfWatch bool
	// statusNotFound is set if a response 404 says that the status is not a subresource. The
	// next write of the status, alone, to the main resource shows whether that is true.
	statusNotFound bool
	// written are the reports to make when the current attempt to write has succeeded.
	written []func()
}

// Body returns the latest known version of the object, or nil before Refresh.
func (s *Session) Body() *object.Body { return s.body }

// IsAheadOfWatch reports whether the object was read directly, in a version that the watch had not shown
// when the pass began.
func (s *Session) IsAheadOfWatch() bool { return s.aheadOfWatch }

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
	s.watched = version
	if s.state.gone {
		if !s.state.isBack(version) {
			return Freshness{}, nil
		}
		s.report.Log.Info("The object counted as deleted, but the watch shows that it exists; it is handled again.", "seen", version)
		s.state.exists()
	}
	switch {
	case s.state.mustRead:
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
// it, the object need not be read again.
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
	s.aheadOfWatch = relist.IsOlder(s.watched, body.ResourceVersion())
	return body, nil
}

// checkHistory reports that a response of the API server is older than what is known of the object.
func (s *Session) checkHistory(version string) {
	if s.target.Rewound != nil && relist.IsOlder(version, s.state.minVersion) {
		s.target.Rewound()
	}
}

// FindAgain reports whether an object still exists that the watch does not show anymore. It makes no request if the
// writer knows that it has released the object.
func (s *Session) FindAgain(ctx context.Context, uid types.UID) (exists bool, err error) {
	isOurs := s.state.uid == uid
	if isOurs && s.state.gone && !s.state.missing {
		return false, nil
	}
	found, listed, err := s.target.API.Find(ctx, s.target.Key.NamespacedName)
	switch {
	case err != nil:
		return false, fmt.Errorf("whether the object still exists cannot be found out: %w", err)
	case found == uid:
		if isOurs {
			s.state.exists()
		}
		return true, nil
	case isOurs:
		s.checkHistory(listed)
		s.state.exists()
		s.state.markGoneAt(listed)
	}
	return false, nil
}

// errListed means that an object exists although a response said that it does not.
var errListed = errors.New("the API server responds that the object does not exist, but lists it")

// confirmGone marks the object as gone if a response 404 is true. Otherwise, it returns an
// error, and the object is tried again later: a proxy can respond with an HTML page, and
// an object that counts as gone is not handled anymore.
func (s *Session) confirmGone(ctx context.Context, notFound error) error {
	if !namesObject(notFound, s.target.Key.Name) {
		return fmt.Errorf("the response 404 does not come from the API server or is not about the object: %w", notFound)
	}
	uid, listed, err := s.target.API.Find(ctx, s.target.Key.NamespacedName)
	switch {
	case err != nil:
		return fmt.Errorf("the API server responds that the object does not exist, and a list cannot confirm that: %w", errors.Join(notFound, err))
	case uid != "" && (s.state.uid == "" || uid == s.state.uid):
		return fmt.Errorf("%w: %w", errListed, notFound)
	}
	s.checkHistory(listed)
	s.state.markGoneAt(listed)
	return nil
}

// isDeleted reports whether the API server has deleted an object, according to the response to
// the removal of its last finalizer, and not only released it for the end of its grace period.
// Versions of it that are later than this response can still
// follow: the API server does not compare versions again when it deletes the object, so writes
// of others can come in between.
func isDeleted(body *object.Body) bool {
	grace, _ := object.Lookup(body.Raw(), object.Path{"metadata", "deletionGracePeriodSeconds"})
	return grace == nil || object.Equal(grace, int64(0))
}

// namesObject reports whether an error is a Status of the API server about this object.
func namesObject(err error, name string) bool {
	var status apierrors.APIStatus
	if !isStatusOfServer(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Name == name
}

// isStatusOfServer reports whether an error is a Status of the API server. The client turns
// other responses, such as the page of a proxy, into errors with a special cause.
func isStatusOfServer(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || !slices.ContainsFunc(details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeUnexpectedServerResponse
	})
}
