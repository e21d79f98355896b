package login

import (
	"context"
	"fmt"
	"time"
)

// current returns the credential to use now. If there is none, the operator logs in,
// unless a login has just failed.
func (cs *Credentials) current(ctx context.Context) (*credential, error) {
	for {
		c, login, err := cs.pick()
		if c != nil || err != nil {
			return c, err
		}
		if err := cs.waitFor(ctx, login); err != nil {
			return nil, err
		}
	}
}

// pick returns the best usable credential; or a channel that is closed at the end of the
// login to wait for; or an error if the next login is delayed.
func (cs *Credentials) pick() (*credential, <-chan struct{}, error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	now := time.Now()
	if best := cs.best(now); best != nil {
		return best, nil, nil
	}
	if cs.failure != nil && now.Before(cs.failure.Next) {
		return nil, nil, cs.failure
	}
	return nil, cs.loginCall.start(&cs.mu, cs.logIn), nil
}

// best returns the usable credential of the highest priority, or nil.
func (cs *Credentials) best(now time.Time) *credential {
	var best *credential
	for _, c := range cs.byHandler {
		isUsable := c.usableUntil.IsZero() || now.Before(c.usableUntil)
		switch {
		case !isUsable:
		case best == nil, c.priority > best.priority, c.priority == best.priority && c.handler < best.handler:
			best = c
		}
	}
	return best
}

func (cs *Credentials) waitFor(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the login of the operator: %w", context.Cause(ctx))
	case <-cs.ctx.Done():
		return errClosed
	}
}

// markAccepted records that the API server accepts the credential.
func (cs *Credentials) markAccepted(c *credential) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.lastLoginAccepted || cs.byHandler[c.handler] != c {
		return
	}
	if cs.failureLogged {
		cs.options.Logger.Info("The operator is logged in to the cluster again.", "handler", c.handler)
	}
	cs.lastLoginAccepted = true
	cs.failureLogged = false
	cs.failure = nil
	cs.backoff = newBackoff()
}
