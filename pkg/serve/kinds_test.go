package serve_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/pkg/kopftest"
	"github.com/kopf-go/kopf/pkg/serve"
	"github.com/kopf-go/kopf/pkg/serve/document"
	"github.com/kopf-go/kopf/pkg/serve/protocol"
	"github.com/kopf-go/kopf/pkg/serve/service"
)

// post is a service that answers calls.
func newService(t *testing.T, respond http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(respond)
	t.Cleanup(server.Close)
	return server
}

func writeFile(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A service gets the call, the token, and nothing else; its answers are those of programs.
func TestAServiceIsCalled(t *testing.T) {
	dir := t.TempDir()
	var mu sync.Mutex
	var seen []string
	server := newService(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		data, _ := io.ReadAll(r.Body)
		call := &protocol.Call{}
		err := json.Unmarshal(data, call)
		seen = append(seen, fmt.Sprint(r.Method, " ", r.Header.Get("Content-Type"), " ", r.Header.Get("Authorization"), " ", call.Handler, " ", err))
		switch call.Name {
		case "busy":
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
		case "broken":
			w.WriteHeader(http.StatusInternalServerError)
		case "wrong":
			w.WriteHeader(http.StatusNotFound)
		case "moved":
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		case "empty":
			w.WriteHeader(http.StatusNoContent)
		case "endless":
			_, _ = io.WriteString(w, `{"result": "`+strings.Repeat("x", 2000))
		default:
			_, _ = io.WriteString(w, `{"result": 5}`)
		}
	})
	certificate := writeFile(t, dir, "ca.crt", certificateOf(server))
	token := writeFile(t, dir, "token", []byte("s3cr3t\n"))
	caller, err := service.New(document.Service{URL: server.URL, CertificateAuthority: certificate, BearerTokenFile: token}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	for name, want := range map[string]struct {
		err   string
		delay time.Duration
	}{
		"one":     {},
		"empty":   {},
		"busy":    {"the service has answered 429 Too Many Requests", 7 * time.Second},
		"broken":  {"the service has answered 500 Internal Server Error", 10 * time.Second},
		"wrong":   {"the service has answered 404 Not Found", 0},
		"moved":   {"the service has answered 307 Temporary Redirect", 0},
		"endless": {"the service has answered more than 1000 bytes", 0},
	} {
		reply, err := caller.Call(t.Context(), &protocol.Call{Handler: "fn", Name: name}, &protocol.Conversation{})
		var unavailable *protocol.TransportError
		delay := time.Duration(0)
		if errors.As(err, &unavailable) {
			delay = unavailable.Delay
		}
		if want.err == "" && (err != nil || name == "one" && reply.Result != int64(5)) || want.err != "" && (err == nil || err.Error() != want.err || delay != want.delay) {
			t.Errorf("%s: got %+v, %v after %s, want %+v", name, reply, err, delay, want)
		}
	}
	if each := slices.Compact(seen); len(seen) != 7 || len(each) != 1 || each[0] != "POST application/json Bearer s3cr3t fn <nil>" {
		t.Errorf("got %q", seen)
	}
	server.Close()
	if _, err := caller.Call(t.Context(), &protocol.Call{}, &protocol.Conversation{}); err == nil || !strings.Contains(err.Error(), "the service cannot be reached") {
		t.Errorf("got %v from a service that is gone", err)
	}
}

func certificateOf(server *httptest.Server) []byte {
	return []byte("-----BEGIN CERTIFICATE-----\n" + encode(server.Certificate().Raw) + "\n-----END CERTIFICATE-----\n")
}

func encode(data []byte) string {
	text, _ := json.Marshal(data) // base64, in quotes
	return strings.Trim(string(text), `"`)
}

// A service whose certificate is unknown gets no call.
func TestAServiceMustBeTrusted(t *testing.T) {
	called := false
	server := newService(t, func(http.ResponseWriter, *http.Request) { called = true })
	server.Config.ErrorLog = nil
	caller, err := service.New(document.Service{URL: server.URL}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := caller.Call(t.Context(), &protocol.Call{}, &protocol.Conversation{}); err == nil || !strings.Contains(err.Error(), "certificate") || called {
		t.Errorf("got %v, called: %v", err, called)
	}
}

// The handlers of the operator itself are called without an object.
func TestActivitiesAreCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, oneWorker, `[{"startup": true, "id": "begin", "param": 1}, {"cleanup": true, "id": "end"}, {"create": "kopfexamples", "id": "fn"}]`, func(c *protocol.Call) string {
			if c.Handler == "begin" && c.Retry == 0 {
				return `{"error": {"message": "not yet", "delay": 5}}`
			}
			return "{}"
		})
		b.Advance(time.Minute)
		if call := b.last("begin"); call.Kind != protocol.Startup || call.Retry != 1 || call.Object != nil || fmt.Sprint(call.Param) != "1" {
			t.Errorf("got %+v", call)
		}
		b.Stop()
		if b.count("end") != 1 || b.last("end").Kind != protocol.Cleanup {
			t.Errorf("the cleanup handler was called %d times", b.count("end"))
		}
	})
}

// Requests of users are rejected, warned about, and changed, as answers say.
func TestRequestsAreReviewed(t *testing.T) {
	var mu sync.Mutex
	var reviews []*protocol.Review
	answer := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		call := &protocol.Call{}
		_ = json.NewDecoder(r.Body).Decode(call)
		reviews = append(reviews, call.Review)
		if call.ID == "" || call.Version != protocol.Version {
			t.Errorf("got the call %q of version %d", call.ID, call.Version)
		}
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	for name, test := range map[string]struct{ kind, answer, want string }{
		"admitted":                  {"validate", `{}`, ""},
		"rejected":                  {"validate", `{"error": {"message": "too large", "code": 422}}`, "too large"},
		"rejected without a status": {"validate", `{"error": {"message": "too large", "permanent": true}}`, "too large"},
		"warned":                    {"mutate", `{"warnings": ["be careful"], "patch": {"spec": {"size": 5}}}`, ""},
		"a patch of a validation":   {"validate", `{"patch": {"spec": {"size": 5}}}`, "the answer of a validating handler has a patch: declare the handler with mutate"},
	} {
		t.Run(name, func(t *testing.T) {
			answer = test.answer
			path := writeFile(t, t.TempDir(), "operator.yaml", []byte("kopf: v1\nhandlers:\n- {"+test.kind+": kopfexamples, id: fn, url: '"+server.URL+"'}"))
			program, err := serve.Load(t.Context(), serve.Options{Files: []string{path}, Logger: logr.Discard()})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = program.Close() }()
			outcome := kopftest.Call(t, serve.AdmissionFunction(program, test.kind), newExample(`{size: 1}`))
			if (outcome.Err == nil) != (test.want == "") || outcome.Err != nil && outcome.Err.Error() != test.want {
				t.Errorf("got %v, want %q", outcome.Err, test.want)
			}
			if name == "warned" && (fmt.Sprint(outcome.Warnings) != "[be careful]" || fmt.Sprint(outcome.Patch) != "map[spec:map[size:5]]") {
				t.Errorf("got the warnings %q and the patch %v", outcome.Warnings, outcome.Patch)
			}
			if review := reviews[len(reviews)-1]; review == nil || review.Operation != "CREATE" {
				t.Errorf("got the review %+v", review)
			}
		})
	}
}

// An operator that is killed at any write calls the handlers of a worker as it calls those in Go: what has
// succeeded is not called again.
func TestCrashesRepeatNoSuccess(t *testing.T) {
	kopftest.Sweep(t, func(t *testing.T, fault kopftest.Option) {
		b := newBenchWith(t, oneWorker, `[{"create": "kopfexamples", "id": "first"}, {"create": "kopfexamples", "id": "second", "after": "first"}]`, func(c *protocol.Call) string {
			if c.Handler == "first" {
				return `{"subhandlers": [{"id": "a"}, {"id": "b"}]}`
			}
			return `{"result": {"by": "` + c.Handler + `"}}`
		}, fault)
		b.Create(newExample(`{}`))
		b.Advance(time.Hour)
		order := b.order("first/a", "first/b", "second")
		if len(order) < 3 || order[len(order)-1] != "second" || slices.Index(order, "second") < slices.Index(order, "first/b") {
			t.Errorf("the order of the calls is %q", order)
		}
	})
}

// A program has sub-handlers, too: it is called again for each of them.
func TestSubhandlersOfProgramsAreCalled(t *testing.T) {
	path := writeFile(t, t.TempDir(), "operator.yaml", []byte(`
kopf: v1
handlers:
- create: kopfexamples
  id: fn
  run: [sh, -c, 'read -r call; case $KOPF_CALL_HANDLER in fn) echo "{\"subhandlers\": [{\"id\": \"a\"}]}";; *) echo "$KOPF_CALL_HANDLER: $call" >&2; echo "{\"patch\": {\"status\": {\"by\": \"$KOPF_CALL_HANDLER\"}}}";; esac']
`))
	program, err := serve.Load(t.Context(), serve.Options{Files: []string{path}, Logger: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = program.Close() }()
	outcome := kopftest.Call(t, serve.ChangeFunction(program), newExample(`{size: 1}`))
	if outcome.Err != nil || fmt.Sprint(outcome.Patch) != "map[status:map[by:fn/a]]" {
		t.Errorf("got %v, and the patch %v", outcome.Err, outcome.Patch)
	}
}

// A restart for changed files interrupts no call.
func TestDrainingWaitsForCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, oneWorker, `[{"create": "kopfexamples", "id": "fn"}, {"daemon": "kopfexamples", "id": "guard"}]`, func(*protocol.Call) string { return "wait" })
		b.Create(newExample(`{}`))
		b.Settle()
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := b.program.Drain(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v while a call runs", err)
		}
		drained := make(chan error, 1)
		go func() { drained <- b.program.Drain(t.Context()) }()
		synctest.Wait()
		select {
		case err := <-drained:
			t.Errorf("got %v while a call runs", err)
		default:
		}
		b.Advance(10 * time.Minute) // the call is canceled, and the worker killed, because it does not answer
		if err := <-drained; err != nil {
			t.Error(err)
		}
		before := b.count("fn")
		b.Advance(10 * time.Minute)
		if b.count("fn") != before {
			t.Error("a call has begun in a program that is drained")
		}
	})
}

// The operator of changed files ends at once: cleanup handlers are called, and calls that wait for the restart fail.
func TestADrainedOperatorEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, oneWorker, `[{"create": "kopfexamples", "id": "fn"}, {"event": "kopfexamples", "id": "seen"}, {"cleanup": true, "id": "last"}]`,
			func(*protocol.Call) string { return `{}` })
		if err := b.program.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.Create(newExample(`{}`))
		b.Settle()
		if b.count("fn") != 0 || b.count("seen") != 0 {
			t.Error("a call has begun in a program that is drained")
		}
		begun := time.Now()
		b.program.TurnAway()
		b.Stop()
		if took := time.Since(begun); took > time.Second || b.count("last") != 1 {
			t.Errorf("the operator has ended after %s, and its cleanup handler was called %d times", took, b.count("last"))
		}
	})
}
