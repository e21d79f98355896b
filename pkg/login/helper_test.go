package login

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/onsi/gomega"
	"k8s.io/client-go/rest"
)

// server is an API server without a network. It responds after the delay.
type server struct {
	mu            sync.Mutex
	tokens        []string // the accepted tokens
	seen          []string // "method path token body", without verifications
	verifications int
	closed        int // how often idle connections were closed
	delay         time.Duration
	answer        func(*http.Request) int // the status for accepted requests; nil: 200
}

func newServer(tokens ...string) *server { return &server{tokens: tokens} }

func (s *server) RoundTrip(request *http.Request) (*http.Response, error) {
	time.Sleep(s.delay)
	content := []byte{}
	if request.Body != nil {
		content, _ = io.ReadAll(request.Body)
		_ = request.Body.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	token := strings.TrimPrefix(request.Header.Get("Authorization"), "Bearer ")
	if request.URL.Path == "/api" {
		s.verifications++
	} else {
		s.seen = append(s.seen, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", request.Method, request.URL.Path, token, content)))
	}
	status := http.StatusOK
	if !slices.Contains(s.tokens, token) {
		status = http.StatusUnauthorized
	} else if s.answer != nil {
		status = s.answer(request)
	}
	return &http.Response{StatusCode: status, Request: request, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

func (s *server) CloseIdleConnections() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed++
}

// accept replaces the accepted tokens.
func (s *server) accept(tokens ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = tokens
}

func (s *server) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// grant returns a connection to the server.
func (s *server) grant(token string) *Connection {
	return &Connection{Config: &rest.Config{Host: "https://cluster.test", BearerToken: token, Transport: s}}
}

// handlers are login handlers. Each call returns the next offer, and further calls return
// the last one.
type handlers struct {
	mu     sync.Mutex
	offers []offer
	calls  int
	delay  time.Duration
}

type offer struct {
	connections map[string]*Connection
	err         error
}

func one(c *Connection) offer { return offer{connections: map[string]*Connection{"handler": c}} }

func (h *handlers) login(ctx context.Context) (map[string]*Connection, error) {
	select {
	case <-time.After(h.delay):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	next := h.offers[min(h.calls, len(h.offers)-1)]
	h.calls++
	return next.connections, next.err
}

func (h *handlers) logins() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls
}

// operator has credentials, and a client that uses them.
type operator struct {
	*Credentials
	handlers *handlers
	client   *http.Client
	mu       sync.Mutex
	log      []string
}

func start(t *testing.T, offers ...offer) *operator {
	t.Helper()
	o := &operator{handlers: &handlers{offers: offers}}
	credentials, err := New(t.Context(), Options{Login: o.handlers.login, Logger: o.logger()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(credentials.Close)
	o.Credentials = credentials
	if o.client, err = rest.HTTPClientFor(credentials.Config()); err != nil {
		t.Fatal(err)
	}
	return o
}

// logger returns a logger that records all levels.
func (o *operator) logger() logr.Logger {
	return funcr.New(func(_, line string) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.log = append(o.log, line)
	}, funcr.Options{Verbosity: 9})
}

func (o *operator) logLines() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.log)
}

// get returns the status of a response.
func (o *operator) get(ctx context.Context, path string) (int, error) {
	return o.do(ctx, http.MethodGet, path, nil)
}

func (o *operator) do(ctx context.Context, method, path string, body io.Reader) (int, error) {
	request, err := http.NewRequestWithContext(ctx, method, o.Config().Host+path, body)
	if err != nil {
		return 0, err
	}
	answer, err := o.client.Do(request)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

// served expects that a request succeeds.
func (o *operator) served(g *gomega.WithT, path string) {
	status, err := o.get(context.Background(), path)
	g.ExpectWithOffset(1, err).NotTo(gomega.HaveOccurred())
	g.ExpectWithOffset(1, status).To(gomega.Equal(http.StatusOK))
}
