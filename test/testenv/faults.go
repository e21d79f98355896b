package testenv

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"k8s.io/client-go/rest"
)

// Fault replaces the execution of a request.
type Fault func(sent *http.Request, next http.RoundTripper) (*http.Response, error)

// Faults is a transport between the clients of one configuration and the API server,
// which can make requests fail. It is safe for concurrent use.
type Faults struct {
	mu      sync.Mutex
	fault   Fault // nil: all requests succeed
	hits    func(Request) bool
	streams map[*stream]struct{}
}

// Strike adds faults to a configuration. Call it before any client is created from the
// configuration. A CountingTransport that is added afterwards also counts the requests
// that fail.
func Strike(config *rest.Config) *Faults {
	faults := &Faults{streams: map[*stream]struct{}{}}
	config.Wrap(faults.Wrap)
	return faults
}

// Begin makes the requests fail that are hit, from now on, and ends the watches that
// are hit, so that their clients send requests again.
func (f *Faults) Begin(fault Fault, hits func(Request) bool) {
	f.mu.Lock()
	f.fault, f.hits = fault, hits
	f.mu.Unlock()
	f.Cut(hits)
}

// Heal ends the fault that Begin started.
func (f *Faults) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = nil
}

// Cut ends the watches that are hit.
func (f *Faults) Cut(hits func(Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.streams {
		if hits(s.request) {
			_ = s.body.Close()
		}
	}
}

// Wrap returns a transport that applies the fault to the requests that are hit, and
// sends the others through the given transport.
func (f *Faults) Wrap(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(sent *http.Request) (*http.Response, error) {
		request := newRequest(sent)
		f.mu.Lock()
		fault, hits := f.fault, f.hits
		f.mu.Unlock()
		if fault != nil && hits(request) {
			return fault(sent, next)
		}
		answer, err := next.RoundTrip(sent)
		if err == nil && request.Method == MethodWatch {
			answer.Body = f.follow(request, answer.Body)
		}
		return answer, err
	})
}

// stream is a watch that can be cut.
type stream struct {
	faults  *Faults
	request Request
	body    io.ReadCloser
}

func (f *Faults) follow(request Request, body io.ReadCloser) *stream {
	s := &stream{f, request, body}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.streams[s] = struct{}{}
	return s
}

func (s *stream) Read(into []byte) (int, error) {
	n, err := s.body.Read(into)
	if err != nil {
		return n, io.EOF
	}
	return n, nil
}

func (s *stream) Close() error {
	s.faults.mu.Lock()
	delete(s.faults.streams, s)
	s.faults.mu.Unlock()
	return s.body.Close()
}

// Answer returns a fault in which the API server answers with an error. With a pause,
// the answer has a Retry-After header with so many seconds.
func Answer(code int, reason string, pause int) Fault {
	return func(sent *http.Request, _ http.RoundTripper) (*http.Response, error) {
		details := ""
		if pause > 0 {
			details = fmt.Sprintf(`,"details":{"retryAfterSeconds":%d}`, pause)
		}
		status := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":"out of order"%s}`, code, reason, details)
		answer := &http.Response{
			StatusCode: code, Status: http.StatusText(code), Request: sent, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(status)),
		}
		if pause > 0 {
			answer.Header.Set("Retry-After", strconv.Itoa(pause))
		}
		return answer, nil
	}
}

// Refuse is a fault in which the API server cannot be reached.
func Refuse(*http.Request, http.RoundTripper) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

// Reset is a fault in which the connection breaks before the request is executed.
func Reset(*http.Request, http.RoundTripper) (*http.Response, error) {
	return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
}

// Lose is a fault in which the connection breaks after the request is executed.
func Lose(sent *http.Request, next http.RoundTripper) (*http.Response, error) {
	return After(Reset)(sent, next)
}

// After returns a fault that executes the request and then fails.
func After(fault Fault) Fault {
	return func(sent *http.Request, next http.RoundTripper) (*http.Response, error) {
		answer, err := next.RoundTrip(sent)
		if err == nil {
			_ = answer.Body.Close()
		}
		return fault(sent, next)
	}
}

// Close is a fault in which a watch ends as soon as it starts.
func Close(sent *http.Request, next http.RoundTripper) (*http.Response, error) {
	answer, err := next.RoundTrip(sent)
	if err == nil {
		_ = answer.Body.Close()
		answer.Body = http.NoBody
	}
	return answer, err
}
