package write

import (
	"context"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// reread reads the object after a failed write, and determines which parts of the update it
// contains nevertheless.
func (s *Session) reread(ctx context.Context, u *Update) error {
	s.state.uncertain = true
	body, err := s.get(ctx)
	if err != nil {
		return err
	}
	if body == nil {
		return errGone
	}
	return s.rebase(ctx, u, body)
}

// rebase binds the update to a version that others may have written, and repeats its
// decisions.
func (s *Session) rebase(ctx context.Context, u *Update, body *object.Body) (err error) {
	s.body, s.changedByOthers, u.changedByOthers = body, true, true
	u.inFlight = s.state.settle(u.inFlight, body)
	if u.Decide != nil {
		u.Decision, err = u.Decide(ctx, body)
	}
	return err
}
