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

// newReplayableRequest takes over the body of the request. Clients of Kubernetes always
// offer copies of the body; any other body is kept in memory.
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

// clone returns a copy that the caller may change and send.
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

// hasCredentials reports whether the caller has set credentials on the request.
func (r *replayableRequest) hasCredentials() bool {
	return r.original.Header.Get("Authorization") != ""
}
