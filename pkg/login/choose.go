package login

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// current is the connection to use now. If there is none, the operator logs in,
// unless it has just failed to.
func (v *Credentials) current(ctx context.Context) (*credential, error) {
	for {
		c, login, err := v.choose()
		if c != nil || err != nil {
			return c, err
		}
		if err := v.wait(ctx, login); err != nil {
			return nil, err
		}
	}
}

// choose returns the best of what is there, or what to wait for, or why there is
// nothing to wait for.
func (v *Credentials) choose() (*credential, <-chan struct{}, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	if best := v.best(now); best != nil {
		return best, nil, nil
	}
	if v.failure != nil && now.Before(v.failure.Next) {
		return nil, nil, v.failure
	}
	return nil, v.login.start(&v.mu, v.renew), nil
}

func (v *Credentials) best(now time.Time) *credential {
	var best *credential
	for _, c := range v.known {
		if c.validAt(now) && c.before(best) {
			best = c
		}
	}
	return best
}

func (v *Credentials) wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the login of the operator: %w", context.Cause(ctx))
	case <-v.ctx.Done():
		return errClosed
	}
}

// accept notes that the API server takes the credential.
func (v *Credentials) accept(c *credential) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.proven || v.known[c.handler] != c {
		return
	}
	if v.told {
		v.options.Logger.Info("The operator is logged in to the cluster again.", "handler", c.handler)
	}
	v.proven, v.told, v.failure, v.delays = true, false, nil, newDelays()
}

// accepted tells whether an answer means that the API server knows who asks. An
// error of a server could come from something in between.
func accepted(answer *http.Response) bool {
	return answer.StatusCode != http.StatusUnauthorized && answer.StatusCode < http.StatusInternalServerError
}
