package login

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// How long the next login is delayed after a useless one: 1 s, 2 s, 4 s, up to a minute;
// and how long rejected credentials are not used again. The API server may have been
// wrong, as can happen while it starts: once the delay is a minute, each login tries the
// same credentials again.
const (
	firstDelay   = time.Second
	maxDelay     = time.Minute
	rejectionTTL = time.Minute
)

func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: firstDelay, Factor: 2, Jitter: 0.1, Steps: 10, Cap: maxDelay}
}

// logIn calls the login handlers and replaces the credentials.
func (cs *Credentials) logIn() {
	connections, err := cs.options.Login(cs.ctx)
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.ctx.Err() != nil {
		return
	}
	cs.dropAll()
	maps.DeleteFunc(cs.rejected, func(_ uint64, since time.Time) bool { return time.Since(since) >= rejectionTTL })
	var mistakes []error
	for _, handler := range slices.Sorted(maps.Keys(connections)) {
		if connections[handler] == nil {
			continue
		}
		c, err := newCredential(cs.seed, handler, connections[handler])
		switch {
		case err != nil:
			mistakes = append(mistakes, fmt.Errorf("the connection of the login handler %q cannot be used: %w", handler, err))
		case !cs.rejected[c.fingerprint].IsZero():
			mistakes = append(mistakes, fmt.Errorf("the login handler %q has returned credentials that the API server has already rejected (401)", handler))
		default:
			cs.byHandler[handler] = c
		}
	}
	if len(cs.byHandler) == 0 {
		cs.setFailure(errors.Join(append(mistakes, err)...))
		return
	}
	for _, mistake := range mistakes {
		cs.options.Logger.Error(mistake, "A connection of a login handler cannot be used; others can.")
	}
	cs.lastLoginAccepted = false
	cs.failure = nil
	cs.options.Logger.V(1).Info("The operator has logged in.", "handlers", slices.Sorted(maps.Keys(cs.byHandler)))
}

// setFailure makes all requests fail for a while. It logs an error once, until the
// operator is logged in again.
func (cs *Credentials) setFailure(cause error) {
	if cause == nil {
		cause = errors.New("no login handler has returned a connection")
	}
	delay := cs.backoff.Step()
	cs.failure = &Error{Next: time.Now().Add(delay), cause: cause}
	if cs.failureLogged || cs.serverURL == nil { // New returns it
		cs.options.Logger.V(1).Info("The operator is still not logged in.", "reason", cause.Error(), "delay", delay.String())
		return
	}
	cs.failureLogged = true
	cs.options.Logger.Error(cause, "The operator is not logged in to the cluster; its requests fail until the login handlers succeed.")
}

func (cs *Credentials) dropAll() {
	for _, c := range cs.byHandler {
		c.closeIdle()
	}
	clear(cs.byHandler)
}
