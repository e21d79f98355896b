package login

import (
	"bytes"
	"io"
	"net/http"
)

// replayableRequest is a request that can be sent several times.
type replayableRequest struct {
	original *http.Request
	openBody func() (io.ReadCloser, error) // the body
}

// newReplayableRequest takes over the body of the request. The clients of Kubernetes always
// offer copies of it; any other one is held in memory.
func newReplayableRequest(original *http.Request) (*replayableRequest, error) {
	if original.Body == nil || original.Body == http.NoBody {
		return &replayableRequest{original, func() (io.ReadCloser, error) { return original.Body, nil }}, nil
	}
	defer func() { _ = original.Body.Close() }()
	if original.GetBody != nil {
		return &replayableRequest{original, original.GetBody}, nil
	}
	content, err := io.ReadAll(original.Body)
	if err != nil {
		return nil, err
	}
	return &replayableRequest{original, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }}, nil
}

// clone is one to send, and to change.
func (r *replayableRequest) clone() (*http.Request, error) {
	body, err := r.openBody()
	if err != nil {
		return nil, err
	}
	request := r.original.Clone(r.original.Context())
	request.Body = body
	if body != nil && body != http.NoBody {
		request.GetBody = r.openBody
	}
	return request, nil
}

// hasCredentials tells whether the request has credentials of its own.
func (r *replayableRequest) hasCredentials() bool {
	return r.original.Header.Get("Authorization") != ""
}
