package health

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/pkg/settings"
)

const secret = "hunter2"

func newTestServer(probes Probes) *Server {
	s := settings.Settings{}.WithDefaults().Health
	return New(Options{Settings: s, Probes: probes, Operator: &fake{}, Logger: logr.Discard()})
}

// request returns the response to a request.
func request(s *Server, path string) (status int, body string) {
	recorder := httptest.NewRecorder()
	s.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
	return recorder.Code, recorder.Body.String()
}

func TestLivenessShowsProbeResultsByID(t *testing.T) {
	tests := map[string]struct {
		probes Probes
		status int
		body   string
	}{
		"no probes": {nil, http.StatusOK, "{}\n"},
		"all probes succeed": {func(context.Context) (map[string]any, map[string]error) {
			return map[string]any{"now": "2019-11-07T18:03:52Z", "random": 765846, "nothing": nil}, nil
		}, http.StatusOK, `{"nothing":null,"now":"2019-11-07T18:03:52Z","random":765846}` + "\n"},
		"one probe fails": {func(context.Context) (map[string]any, map[string]error) {
			return map[string]any{"now": 1}, map[string]error{"db": errors.New(secret)}
		}, http.StatusInternalServerError, `{"db":{"error":"the probe failed; see the log for the reason"},"now":1}` + "\n"},
		"one returns a value that JSON cannot encode": {func(context.Context) (map[string]any, map[string]error) {
			return map[string]any{"channel": make(chan int), "now": 1}, nil
		}, http.StatusInternalServerError, `{"channel":{"error":"the result cannot be encoded as JSON"},"now":1}` + "\n"},
		"the probes panic": {
			func(context.Context) (map[string]any, map[string]error) { panic(secret) },
			http.StatusInternalServerError, "the probe handlers cannot be called; see the log for the reason\n",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if status, body := request(newTestServer(test.probes), "/healthz"); status != test.status || body != test.body {
				t.Errorf("got %d %s", status, body)
			}
		})
	}
}

// counting returns probes that take a second and count their calls.
func counting(calls *atomic.Int32) Probes {
	return func(context.Context) (map[string]any, map[string]error) {
		time.Sleep(time.Second)
		return map[string]any{"calls": calls.Add(1)}, nil
	}
}

func TestConcurrentRequestsCallTheProbesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		var asking sync.WaitGroup
		s := newTestServer(counting(&calls))
		for range 100 {
			asking.Go(func() {
				if status, body := request(s, "/healthz"); status != http.StatusOK || body != "{\"calls\":1}\n" {
					t.Errorf("got %d %s", status, body)
				}
			})
		}
		asking.Wait()
	})
}

func TestProbeResultsAreCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		s := newTestServer(counting(&calls))
		for _, step := range []struct {
			after time.Duration // the previous response
			want  string
		}{{0, "1"}, {9 * time.Second, "1"}, {time.Second, "2"}, {time.Hour, "3"}, {0, "3"}} {
			time.Sleep(step.after)
			if _, body := request(s, "/healthz"); !strings.Contains(body, step.want) {
				t.Errorf("after %s: got %s", step.after, body)
			}
		}
	})
}

func TestHangingProbesTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		released, calls := make(chan struct{}), atomic.Int32{}
		s := newTestServer(func(context.Context) (map[string]any, map[string]error) {
			calls.Add(1)
			<-released
			return map[string]any{"late": true}, nil
		})
		began := time.Now()
		for range 2 {
			if status, body := request(s, "/healthz"); status != http.StatusInternalServerError || !strings.Contains(body, "did not return in time") {
				t.Errorf("got %d %s", status, body)
			}
		}
		if took := time.Since(began); took != 2*settings.DefaultProbeCacheTTL || calls.Load() != 1 {
			t.Errorf("took %s and %d calls", took, calls.Load())
		}
		close(released)
		synctest.Wait()
		if status, body := request(s, "/healthz"); status != http.StatusOK || calls.Load() != 1 {
			t.Errorf("got %d %s", status, body)
		}
	})
}

func TestCanceledRequestDoesNotCancelTheProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		s := newTestServer(counting(&calls))
		hasty, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := s.prober.get(hasty); err == nil {
			t.Error("got a response before the probes returned")
		}
		if status, body := request(s, "/healthz"); status != http.StatusOK || calls.Load() != 1 {
			t.Errorf("got %d %s", status, body)
		}
	})
}

func TestContextOfProbesTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(func(ctx context.Context) (map[string]any, map[string]error) {
			<-ctx.Done()
			return nil, map[string]error{"slow": context.Cause(ctx)}
		})
		request(s, "/healthz")
		synctest.Wait()
		if status, body := request(s, "/healthz"); status != http.StatusInternalServerError || !strings.Contains(body, "slow") {
			t.Errorf("got %d %s", status, body)
		}
	})
}
