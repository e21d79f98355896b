package write

import (
	"context"
	"errors"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// reread reads the object after a conflict (409) or a write without a response, and determines
// which parts of the update it contains nevertheless.
func (s *Session) reread(ctx context.Context, u *Update) error {
	body, err := s.get(ctx)
	if err != nil {
		return err
	}
	if body == nil {
		return errGone
	}
	return s.rebase(ctx, u, body)
}

// rereadOrWait is reread after a conflict: nothing was written. So without the permission to read the
// object, the next pass uses what the watch shows by then.
func (s *Session) rereadOrWait(ctx context.Context, u *Update) error {
	err := s.reread(ctx, u)
	if isForbidden(err) {
		s.state.uncertain = false
	}
	return err
}

// errReleased ends an update of an object that is being deleted without our finalizer: the
// operator has nothing to do with it anymore.
var errReleased = errors.New("the object was released for deletion")

// rebase binds the update to a version that others may have written, and repeats its
// decisions.
func (s *Session) rebase(ctx context.Context, u *Update, body *object.Body) (err error) {
	s.body = body
	s.changedByOthers = true
	u.changedByOthers = true
	u.aside = nil
	if u.isReleased(body, s.writer.finalizer()) {
		s.state.Drop()
		return errReleased
	}
	u.inFlight = s.state.settle(u.inFlight, body)
	if u.Decide != nil {
		u.Decision, err = u.Decide(ctx, body)
	}
	return err
}
