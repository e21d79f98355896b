package inprocess

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"sync"
)

// Transport answers requests with a handler in the same process. It is safe for concurrent
// use, as far as the handler is.
type Transport struct {
	Handler http.Handler
}

// RoundTrip calls the handler, and returns when its response is complete, or when the
// handler flushes its beginning. If the request is canceled, its context is, too; the
// handler must return then.
func (t Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(request.Context())
	served := request.Clone(ctx)
	if served.Body == nil {
		served.Body = http.NoBody
	}
	served.RequestURI = request.URL.RequestURI()
	if served.Host == "" {
		served.Host = request.URL.Host
	}
	w := &writer{header: http.Header{}, begun: make(chan struct{}), cancel: cancel}
	go t.serve(w, served)
	select {
	case <-w.begun:
	case <-ctx.Done():
		w.abandon(context.Cause(ctx))
		return nil, context.Cause(ctx)
	}
	return w.response(request)
}

// serve calls the handler. A panic becomes an error of the client, as a broken connection.
func (t Transport) serve(w *writer, request *http.Request) {
	defer func() { _ = request.Body.Close() }()
	defer func() {
		if reason := recover(); reason != nil {
			w.end(fmt.Errorf("the handler of %s %s panicked: %v\n%s", request.Method, request.URL.Path, reason, debug.Stack()))
		}
	}()
	t.Handler.ServeHTTP(w, request)
	w.end(nil)
}

// writer collects a response, or streams it after Flush.
type writer struct {
	cancel context.CancelFunc
	begun  chan struct{} // closed when the response can be returned

	mu     sync.Mutex
	header http.Header
	sent   http.Header // a copy, for the client
	status int
	buffer bytes.Buffer
	reader *io.PipeReader // of a stream
	stream *io.PipeWriter
	err    error // of a handler that panicked before its response
	// abandoned is why the client does not want the response anymore. The handler may begin it later.
	abandoned error
	ended     bool
}

var _ http.Flusher = (*writer)(nil)

// Header returns the headers of the response.
func (w *writer) Header() http.Header { return w.header }

// WriteHeader sets the status of the response.
func (w *writer) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.status == 0 {
		w.status = status
		w.sent = w.header.Clone()
	}
}

// Write adds to the body. In a stream, it waits until the client has read the data, and
// returns an error when the client has closed the body.
func (w *writer) Write(data []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	w.mu.Lock()
	stream := w.stream
	if stream == nil {
		defer w.mu.Unlock()
		return w.buffer.Write(data)
	}
	w.mu.Unlock()
	return stream.Write(data)
}

// Flush begins a stream. What is written before belongs to it.
func (w *writer) Flush() {
	w.WriteHeader(http.StatusOK)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stream == nil && !w.ended {
		w.reader, w.stream = io.Pipe()
		if w.abandoned != nil {
			_ = w.reader.CloseWithError(w.abandoned) // always nil
		}
		close(w.begun)
	}
}

// end completes the response.
func (w *writer) end(err error) {
	w.WriteHeader(http.StatusOK)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	if w.stream != nil {
		_ = w.stream.CloseWithError(err) // always nil
		return
	}
	w.err = err
	close(w.begun)
}

// abandon ends a response that the client does not want anymore.
func (w *writer) abandon(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.abandoned = err
	if w.reader != nil {
		_ = w.reader.CloseWithError(err) // always nil
	}
}

func (w *writer) response(request *http.Request) (*http.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		w.cancel()
		return nil, w.err
	}
	made := &http.Response{
		Status: fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: w.sent, Request: request, ContentLength: -1,
	}
	if w.stream == nil {
		w.cancel()
		made.ContentLength = int64(w.buffer.Len())
		made.Body = io.NopCloser(bytes.NewReader(w.buffer.Bytes()))
		return made, nil
	}
	made.Body = newStreamBody(request.Context(), w)
	return made, nil
}

// streamBody is the body of a stream. Closing it, or canceling the request, ends the
// handler.
type streamBody struct {
	*io.PipeReader
	close func() error
}

func newStreamBody(ctx context.Context, w *writer) streamBody {
	reader := w.reader
	stream := w.stream
	forget := context.AfterFunc(ctx, func() {
		_ = stream.CloseWithError(context.Cause(ctx)) // always nil
		w.cancel()
	})
	return streamBody{PipeReader: reader, close: func() error {
		forget()
		w.cancel()
		return errors.Join(reader.Close())
	}}
}

// Close ends the stream.
func (b streamBody) Close() error { return b.close() }
