package login

import (
	"bytes"
	"io"
	"net/http"
)

// letter is a request that can be sent several times.
type letter struct {
	sent *http.Request
	open func() (io.ReadCloser, error) // the body
}

// newLetter takes over the body of the request. The clients of Kubernetes always
// offer copies of it; any other one is held in memory.
func newLetter(sent *http.Request) (*letter, error) {
	if sent.Body == nil || sent.Body == http.NoBody {
		return &letter{sent, func() (io.ReadCloser, error) { return sent.Body, nil }}, nil
	}
	defer func() { _ = sent.Body.Close() }()
	if sent.GetBody != nil {
		return &letter{sent, sent.GetBody}, nil
	}
	content, err := io.ReadAll(sent.Body)
	if err != nil {
		return nil, err
	}
	return &letter{sent, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }}, nil
}

// copy is one to send, and to change.
func (l *letter) copy() (*http.Request, error) {
	body, err := l.open()
	if err != nil {
		return nil, err
	}
	request := l.sent.Clone(l.sent.Context())
	request.Body = body
	if body != nil && body != http.NoBody {
		request.GetBody = l.open
	}
	return request, nil
}

// signed tells whether the request has credentials of its own.
func (l *letter) signed() bool { return l.sent.Header.Get("Authorization") != "" }
