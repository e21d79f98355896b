package login

import (
	"io"
	"net/http"
)

// transport sends the requests of the operator by the connection that is the right
// one at that time.
type transport struct{ credentials *Credentials }

// RoundTrip sends a request, and repeats it after a new login if the credentials
// were not accepted. A request that brings credentials of its own is not judged.
func (t transport) RoundTrip(original *http.Request) (*http.Response, error) {
	replayable, err := newReplayableRequest(original)
	if err != nil {
		return nil, err
	}
	for {
		c, err := t.credentials.current(original.Context())
		if err != nil {
			return nil, err
		}
		answer, err := t.send(replayable, c)
		if err != nil || answer.StatusCode != http.StatusUnauthorized || replayable.hasCredentials() {
			return answer, err
		}
		drain(answer)
		valid, err := t.credentials.verify(original.Context(), c)
		switch {
		case err != nil:
			return nil, err
		case valid: // perhaps refreshed by client-go; else it is for the caller to know
			return t.send(replayable, c)
		}
	}
}

func (t transport) send(replayable *replayableRequest, c *credential) (*http.Response, error) {
	request, err := replayable.clone()
	if err != nil {
		return nil, err
	}
	if err := retarget(request, t.credentials.serverURL, c.serverURL); err != nil {
		return nil, err
	}
	answer, err := c.transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if isAuthenticated(answer) && !replayable.hasCredentials() {
		t.credentials.markAccepted(c)
	}
	answer.Request = replayable.original // the other one has the credentials
	return answer, nil
}

// CloseIdleConnections closes what is open and not in use.
func (t transport) CloseIdleConnections() {
	t.credentials.mu.Lock()
	defer t.credentials.mu.Unlock()
	for _, c := range t.credentials.byHandler {
		c.closeIdle()
	}
}

// drain makes the connection free for the next request, if the rest is short.
func drain(answer *http.Response) {
	const short = 4096
	_, _ = io.CopyN(io.Discard, answer.Body, short)
	_ = answer.Body.Close()
}
