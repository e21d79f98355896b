package login

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// current is the connection to use now. If there is none, the operator logs in,
// unless it has just failed to.
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

// pick returns the best of what is there, or what to wait for, or why there is
// nothing to wait for.
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

func (cs *Credentials) best(now time.Time) *credential {
	var best *credential
	for _, c := range cs.byHandler {
		if c.isUsableAt(now) && c.isPreferredTo(best) {
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

// markAccepted notes that the API server takes the credential.
func (cs *Credentials) markAccepted(c *credential) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.lastLoginAccepted || cs.byHandler[c.handler] != c {
		return
	}
	if cs.failureLogged {
		cs.options.Logger.Info("The operator is logged in to the cluster again.", "handler", c.handler)
	}
	cs.lastLoginAccepted, cs.failureLogged, cs.failure, cs.backoff = true, false, nil, newBackoff()
}

// isAuthenticated tells whether an answer means that the API server knows who asks. An
// error of a server could come from something in between.
func isAuthenticated(answer *http.Response) bool {
	return answer.StatusCode != http.StatusUnauthorized && answer.StatusCode < http.StatusInternalServerError
}
