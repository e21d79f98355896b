package login

import (
	"io"
	"net/http"
)

// transport sends each request of the operator with the current credential.
type transport struct{ credentials *Credentials }

// RoundTrip sends a request, and repeats it after a new login if the credentials are
// rejected. It does not repeat requests on which the caller has set credentials.
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
		response, err := t.send(replayable, c)
		if err != nil || response.StatusCode != http.StatusUnauthorized || replayable.hasCredentials() {
			return response, err
		}
		drain(response)
		valid, err := t.credentials.verify(original.Context(), c)
		switch {
		case err != nil:
			return nil, err
		case valid: // client-go may have refreshed it; otherwise the 401 is for the caller
			return t.send(replayable, c)
		}
	}
}

// send sends a request once, with a credential.
func (t transport) send(replayable *replayableRequest, c *credential) (*http.Response, error) {
	request, err := replayable.clone()
	if err != nil {
		return nil, err
	}
	if err := retarget(request, t.credentials.serverURL, c.serverURL); err != nil {
		return nil, err
	}
	response, err := c.transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	// A server error may come from a proxy in between.
	isAuthenticated := response.StatusCode != http.StatusUnauthorized && response.StatusCode < http.StatusInternalServerError
	if isAuthenticated && !replayable.hasCredentials() {
		t.credentials.markAccepted(c)
	}
	response.Request = replayable.original // the other request contains the credentials
	return response, nil
}

// CloseIdleConnections closes idle connections.
func (t transport) CloseIdleConnections() {
	t.credentials.mu.Lock()
	defer t.credentials.mu.Unlock()
	for _, c := range t.credentials.byHandler {
		c.closeIdle()
	}
}

// drain closes the body, and reads it before if it is short: this keeps the connection
// reusable.
func drain(response *http.Response) {
	const short = 4096
	_, _ = io.CopyN(io.Discard, response.Body, short)
	_ = response.Body.Close()
}
