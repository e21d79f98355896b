package login

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// How long after a login without use the next one is possible: 1 s, 2 s, 4 s, up to
// a minute; and how long rejected credentials are not taken again. It could be the
// API server that was wrong, as they are sometimes while they start; when the pause
// has become a minute, each login gives the same credentials another chance.
const (
	firstPause   = time.Second
	longestPause = time.Minute
	forgiveAfter = time.Minute
)

func newDelays() wait.Backoff {
	return wait.Backoff{Duration: firstPause, Factor: 2, Jitter: 0.1, Steps: 10, Cap: longestPause}
}

// renew logs in.
func (v *Credentials) renew() {
	connections, err := v.options.Login(v.ctx)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ctx.Err() != nil {
		return
	}
	v.forget()
	mistakes := v.take(connections)
	if len(v.known) == 0 {
		v.fail(errors.Join(append(mistakes, err)...))
		return
	}
	for _, mistake := range mistakes {
		v.options.Logger.Error(mistake, "One of the connections cannot be used; there are others.")
	}
	v.proven, v.failure = false, nil
	v.options.Logger.V(1).Info("The operator has logged in.", "handlers", slices.Sorted(maps.Keys(v.known)))
}

// take keeps the connections that can be used, and says why others cannot.
func (v *Credentials) take(connections map[string]*Connection) []error {
	maps.DeleteFunc(v.rejected, func(_ uint64, since time.Time) bool { return time.Since(since) >= forgiveAfter })
	var mistakes []error
	for _, handler := range slices.Sorted(maps.Keys(connections)) {
		if connections[handler] == nil {
			continue
		}
		c, err := newCredential(v.seed, handler, connections[handler])
		switch {
		case err != nil:
			mistakes = append(mistakes, fmt.Errorf("the connection of the login handler %q cannot be used: %w", handler, err))
		case !v.rejected[c.print].IsZero():
			mistakes = append(mistakes, fmt.Errorf("the login handler %q has returned the credentials again that the API server has rejected (401)", handler))
		default:
			v.known[handler] = c
		}
	}
	return mistakes
}

// fail lets all requests fail for a while. The log has it as an error once, until
// there is a success again.
func (v *Credentials) fail(cause error) {
	if cause == nil {
		cause = errors.New("no login handler has returned a connection")
	}
	pause := v.delays.Step()
	v.failure = &Error{Next: time.Now().Add(pause), cause: cause}
	if v.told || v.base == nil { // New returns it
		v.options.Logger.V(1).Info("The operator is still not logged in.", "reason", cause.Error(), "pause", pause.String())
		return
	}
	v.told = true
	v.options.Logger.Error(cause, "The operator is not logged in to the cluster; its requests fail until the login handlers succeed.")
}

func (v *Credentials) forget() {
	for _, c := range v.known {
		c.retire()
	}
	clear(v.known)
}
