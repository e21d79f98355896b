package kopftest

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/kopf-go/kopf/internal/handler"
)

// errCut is the error of requests after a crash.
var errCut = errors.New("the operator has crashed")

// link is the connection of one run of the operator. It records writes, and can be cut.
type link struct {
	next      http.RoundTripper
	recording *recording
	// alive ends when the connection is cut, and streams end when the operator has noticed
	// its end: before, clients would log broken streams.
	alive, streams  context.Context
	cut, endStreams context.CancelFunc
	// strike sends a write under a fault. It returns false if this write has none.
	strike func(Write, *http.Request) (*http.Response, error, bool)
}

func newLink(next http.RoundTripper, to *recording) *link {
	l := &link{next: next, recording: to}
	l.alive, l.cut = context.WithCancel(context.Background())
	l.streams, l.endStreams = context.WithCancel(context.Background())
	return l
}

func (l *link) isCut() bool { return l.alive.Err() != nil }

// observe returns a context whose handlers are recorded as those of this run.
func (l *link) observe(ctx context.Context) context.Context {
	ctx = context.WithValue(ctx, linkKey{}, l)
	return handler.WithObserver(ctx, observer{recording: l.recording, from: l})
}

type linkKey struct{}

// RoundTrip sends a request while the operator lives.
func (l *link) RoundTrip(request *http.Request) (*http.Response, error) {
	if l.isCut() {
		return nil, errCut
	}
	ctx, cancel := context.WithCancelCause(request.Context())
	forget := context.AfterFunc(l.streams, func() { cancel(errCut) })
	write, request := newWrite(request.WithContext(ctx))
	response, err := l.send(write, request)
	if err == nil && l.isCut() {
		_ = response.Body.Close()
		err = errCut
	}
	if err != nil {
		forget()
		cancel(nil)
		return nil, err
	}
	response.Body = closing{response.Body, func() { forget(); cancel(nil) }}
	return response, nil
}

// send sends a request. A write is counted and recorded, and may have a fault.
func (l *link) send(write *Write, request *http.Request) (*http.Response, error) {
	if write != nil {
		write.Number = l.recording.count(write.Object)
		if l.strike != nil {
			if response, err, struck := l.strike(*write, request); struck {
				return response, err
			}
		}
	}
	send := l.next.RoundTrip
	if failure := l.recording.failureOf(request); failure != nil {
		send = failure.respond
	}
	response, err := send(request)
	if err == nil && write != nil {
		write.Code = response.StatusCode
		l.recording.add(func(r *recording) {
			r.writes = append(r.writes, *write)
			r.tell("write: ", write)
		})
	}
	return response, err
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
