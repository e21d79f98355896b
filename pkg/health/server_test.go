package health

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
)

func TestOnlyGETAndHEADAreSupported(t *testing.T) {
	for method, want := range map[string]int{
		http.MethodGet: http.StatusOK, http.MethodHead: http.StatusOK,
		http.MethodPost: http.StatusMethodNotAllowed, http.MethodDelete: http.StatusMethodNotAllowed, "TRACE": http.StatusMethodNotAllowed,
	} {
		recorder := httptest.NewRecorder()
		newTestServer(nil).ServeHTTP(recorder, httptest.NewRequest(method, "/healthz", strings.NewReader("x")))
		if recorder.Code != want || want == http.StatusMethodNotAllowed && recorder.Header().Get("Allow") == "" {
			t.Errorf("%s: got %d %v", method, recorder.Code, recorder.Header())
		}
	}
	if status, body := request(newTestServer(nil), "/debug/pprof/"); status != http.StatusNotFound || !strings.Contains(body, "/readyz") {
		t.Errorf("got %d %s", status, body)
	}
}

// startServer runs a server and returns its address.
func startServer(t *testing.T, s *Server) (address string, stop func() error) {
	t.Helper()
	listening := make(chan string, 1)
	s.options.Settings.Address = "127.0.0.1:0"
	s.options.Logger = funcr.NewJSON(func(line string) {
		if _, rest, found := strings.Cut(line, `"address":"`); found {
			address, _, _ := strings.Cut(rest, `"`)
			listening <- address
		}
	}, funcr.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	select {
	case address = <-listening:
	case err := <-ended:
		t.Fatal(err)
	}
	return address, func() error {
		cancel()
		return <-ended
	}
}

func TestServerFinishesRequestsAtShutdown(t *testing.T) {
	began, proceed := make(chan struct{}), make(chan struct{})
	s := newTestServer(func(context.Context) (map[string]any, map[string]error) {
		close(began)
		<-proceed
		return map[string]any{"a": 1}, nil
	})
	address, stop := startServer(t, s)
	answered := make(chan string, 1)
	go func() {
		response, err := http.Get("http://" + address + "/healthz")
		if err != nil {
			answered <- err.Error()
			return
		}
		defer func() { _ = response.Body.Close() }()
		body, _ := io.ReadAll(response.Body)
		answered <- string(body)
	}()
	<-began
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	close(proceed)
	if got := <-answered; got != "{\"a\":1}\n" {
		t.Errorf("got %s", got)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", address); err == nil {
		t.Error("the server still listens")
	}
	if s.NeedLeaderElection() {
		t.Error("standby replicas must have an endpoint")
	}
}

func TestAddressInUseIsAClearError(t *testing.T) {
	address, stop := startServer(t, newTestServer(nil))
	second := newTestServer(nil)
	second.options.Settings.Address = address
	err := second.Start(t.Context())
	for _, word := range []string{address, "settings.Health.Address", "in use"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("got %v", err)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestServerLimitsHeaders(t *testing.T) {
	address, stop := startServer(t, newTestServer(nil))
	defer func() { _ = stop() }()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Large", strings.Repeat("x", 2*maxHeaderBytes))
	response, err := http.DefaultClient.Do(request)
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if err == nil {
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("got %s", response.Status)
		}
	}
}

// A graceful shutdown alone would leave the connection open, and its goroutine behind.
func TestServerClosesRequestsThatOutlastTheShutdown(t *testing.T) {
	began, proceed := make(chan struct{}), make(chan struct{})
	defer close(proceed)
	s := newTestServer(func(context.Context) (map[string]any, map[string]error) {
		close(began)
		<-proceed
		return nil, nil
	})
	s.shutdownTimeout = time.Millisecond
	address, stop := startServer(t, s)
	failed := make(chan error, 1)
	go func() {
		response, err := http.Get("http://" + address + "/healthz")
		if err == nil {
			err = response.Body.Close()
		}
		failed <- err
	}()
	<-began
	if err := stop(); err != nil {
		t.Error(err)
	}
	if err := <-failed; err == nil {
		t.Error("got a response after the end of the server")
	}
}
