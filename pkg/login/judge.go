package login

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// trialTimeout is how long the API server may take to confirm a 401.
const trialTimeout = 10 * time.Second

// judge finds out whether a 401 is due to the credential, and gives it up then. All
// requests that were answered so share the question.
func (v *Credentials) judge(ctx context.Context, c *credential) (valid bool, err error) {
	v.mu.Lock()
	if !v.has(c) {
		defer v.mu.Unlock()
		return false, nil
	}
	done := c.trial.start(&v.mu, func() {
		if !v.confirmed(c) {
			v.reject(c)
		}
	})
	v.mu.Unlock()
	if err := v.wait(ctx, done); err != nil {
		return false, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.has(c), nil
}

func (v *Credentials) has(c *credential) bool { return v.known[c.handler] == c }

// confirmed asks the API server itself for what every user may see. Anything but
// that is no excuse for a 401.
func (v *Credentials) confirmed(c *credential) bool {
	ctx, cancel := context.WithTimeout(v.ctx, trialTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base.JoinPath("api").String(), http.NoBody)
	if err != nil {
		return false
	}
	answer, err := c.transport.RoundTrip(request)
	if err != nil {
		return false
	}
	discard(answer)
	return answer.StatusCode == http.StatusOK
}

// reject gives up a credential. If nothing of the last login was any good, the
// next one has to wait.
func (v *Credentials) reject(c *credential) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.has(c) {
		return
	}
	delete(v.known, c.handler)
	c.retire()
	v.rejected[c.print] = time.Now()
	level := 1
	if v.proven { // it is news
		level = 0
	}
	v.options.Logger.V(level).Info("The API server rejects (401) the credentials of a login handler.", "handler", c.handler)
	if !v.proven && v.best(time.Now()) == nil {
		v.fail(fmt.Errorf("the API server rejects (401) the credentials that the login handlers have just returned, those of %q last", c.handler))
	}
}
