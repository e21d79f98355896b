package login

import (
	"io"
	"net/http"
)

// transport sends the requests of the operator by the connection that is the right
// one at that time.
type transport struct{ vault *Credentials }

// RoundTrip sends a request, and repeats it after a new login if the credentials
// were not accepted. A request that brings credentials of its own is not judged.
func (t transport) RoundTrip(sent *http.Request) (*http.Response, error) {
	letter, err := newLetter(sent)
	if err != nil {
		return nil, err
	}
	for {
		c, err := t.vault.current(sent.Context())
		if err != nil {
			return nil, err
		}
		answer, err := t.send(letter, c)
		if err != nil || answer.StatusCode != http.StatusUnauthorized || letter.signed() {
			return answer, err
		}
		discard(answer)
		valid, err := t.vault.judge(sent.Context(), c)
		switch {
		case err != nil:
			return nil, err
		case valid: // perhaps refreshed by client-go; else it is for the caller to know
			return t.send(letter, c)
		}
	}
}

func (t transport) send(letter *letter, c *credential) (*http.Response, error) {
	request, err := letter.copy()
	if err != nil {
		return nil, err
	}
	if err := move(request, t.vault.base, c.base); err != nil {
		return nil, err
	}
	answer, err := c.transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if accepted(answer) && !letter.signed() {
		t.vault.accept(c)
	}
	answer.Request = letter.sent // the other one has the credentials
	return answer, nil
}

// CloseIdleConnections closes what is open and not in use.
func (t transport) CloseIdleConnections() {
	t.vault.mu.Lock()
	defer t.vault.mu.Unlock()
	for _, c := range t.vault.known {
		c.retire()
	}
}

// discard makes the connection free for the next request, if the rest is short.
func discard(answer *http.Response) {
	const short = 4096
	_, _ = io.CopyN(io.Discard, answer.Body, short)
	_ = answer.Body.Close()
}
