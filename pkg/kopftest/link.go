package kopftest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/kopf-go/kopf/pkg/kopftest/internal/inprocess"
)

// errCut is the error of requests after a crash.
var errCut = errors.New("the operator has crashed")

// link is the connection of one run of the operator. It records writes, and can be cut.
type link struct {
	next      http.RoundTripper
	recording *recording
	alive     context.Context
	cut       context.CancelFunc
}

func newLink(next http.RoundTripper, to *recording) *link {
	alive, cut := context.WithCancel(context.Background())
	return &link{next: next, recording: to, alive: alive, cut: cut}
}

func (l *link) isCut() bool { return l.alive.Err() != nil }

// RoundTrip sends a request while the operator lives.
func (l *link) RoundTrip(request *http.Request) (*http.Response, error) {
	if l.isCut() {
		return nil, errCut
	}
	ctx, cancel := context.WithCancelCause(request.Context())
	forget := context.AfterFunc(l.alive, func() { cancel(errCut) })
	write, request := newWrite(request.WithContext(ctx))
	response, err := l.next.RoundTrip(request)
	if err != nil {
		forget()
		cancel(nil)
		return nil, err
	}
	if write != nil {
		write.Code = response.StatusCode
		l.recording.add(func(r *recording) { r.writes = append(r.writes, *write) })
	}
	response.Body = closing{response.Body, func() { forget(); cancel(nil) }}
	return response, nil
}

// closing calls a function after the body is closed.
type closing struct {
	io.ReadCloser
	then func()
}

// Read reads the body. A stream that is cut off ends, as at a closed connection.
func (c closing) Read(data []byte) (int, error) {
	n, err := c.ReadCloser.Read(data)
	if errors.Is(err, errCut) {
		return n, io.EOF
	}
	return n, err
}

// Close closes the body.
func (c closing) Close() error {
	defer c.then()
	return c.ReadCloser.Close()
}

// Write is a request of the operator, or of its handlers, that changes objects.
type Write struct {
	At time.Time
	// Method is POST, PUT, PATCH, or DELETE.
	Method string
	// Path is the path of the request, without the part for the version of the API:
	// "namespaces/default/pods/one/status".
	Path string
	Body string
	Code int // of the response
}

// newWrite returns what is recorded of a request, and the request to send. It returns nil
// for reads, and for what does not change objects: reviews, events, leases, and dry runs.
func newWrite(request *http.Request) (*Write, *http.Request) {
	path := objectPath(request.URL.Path)
	isHidden := strings.Contains(path, "events") && !strings.Contains(path, "/events/") || strings.Contains(path, "leases") || strings.HasSuffix(path, "reviews")
	if request.Method == http.MethodGet || isHidden || request.URL.Query().Get("dryRun") != "" {
		return nil, request
	}
	var body []byte
	if request.Body != nil {
		body, _ = io.ReadAll(request.Body) // clients send from memory
		request.Body = io.NopCloser(bytes.NewReader(body))
	}
	return &Write{At: time.Now(), Method: request.Method, Path: path, Body: string(body)}, request
}

// objectPath returns a path without the group and the version.
func objectPath(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	skip := 2 // api, v1
	if parts[0] == "apis" {
		skip = 3
	}
	return strings.Join(parts[min(skip, len(parts)):], "/")
}

// review sends a review to the operator.
func (i *instance) review(request *http.Request) (*http.Response, error) {
	i.mu.Lock()
	reviews := i.reviews
	i.mu.Unlock()
	if reviews == nil {
		return nil, errors.New("connection refused: the operator does not serve reviews")
	}
	return inprocess.Transport{Handler: reviews}.RoundTrip(request)
}
