package login

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// verifyTimeout limits the request that confirms a 401.
const verifyTimeout = 10 * time.Second

// verify finds out whether the credential caused a 401, and drops it if so. All requests
// with a 401 share one verification.
func (cs *Credentials) verify(ctx context.Context, c *credential) (valid bool, err error) {
	cs.mu.Lock()
	if !cs.holds(c) {
		defer cs.mu.Unlock()
		return false, nil
	}
	done := c.verification.start(&cs.mu, func() {
		if !cs.isStillValid(c) {
			cs.reject(c)
		}
	})
	cs.mu.Unlock()
	if err := cs.waitFor(ctx, done); err != nil {
		return false, err
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.holds(c), nil
}

func (cs *Credentials) holds(c *credential) bool { return cs.byHandler[c.handler] == c }

// isStillValid requests what every user may see from the API server itself. Any other
// response than success confirms the 401.
func (cs *Credentials) isStillValid(c *credential) bool {
	ctx, cancel := context.WithTimeout(cs.ctx, verifyTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.serverURL.JoinPath("api").String(), http.NoBody)
	if err != nil {
		return false
	}
	response, err := c.transport.RoundTrip(request)
	if err != nil {
		return false
	}
	drain(response)
	return response.StatusCode == http.StatusOK
}

// reject drops a credential. If no credential of the last login was accepted, the next
// login is delayed.
func (cs *Credentials) reject(c *credential) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if !cs.holds(c) {
		return
	}
	delete(cs.byHandler, c.handler)
	c.closeIdle()
	cs.rejected[c.fingerprint] = time.Now()
	level := 1
	if cs.lastLoginAccepted { // worth a line at the default level
		level = 0
	}
	cs.options.Logger.V(level).Info("The API server rejects (401) the credentials of a login handler.", "handler", c.handler)
	if !cs.lastLoginAccepted && cs.best(time.Now()) == nil {
		cs.setFailure(fmt.Errorf("the API server rejects (401) the credentials that the login handlers have just returned, those of %q last", c.handler))
	}
}
