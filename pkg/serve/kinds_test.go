package serve_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
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
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// The operator of changed files ends at once: cleanup handlers are called, and calls that wait for the restart are no attempts.
func TestADrainedOperatorEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, oneWorker, `[{"create": "kopfexamples", "id": "fn", "retries": 1}, {"event": "kopfexamples", "id": "seen"}, {"cleanup": true, "id": "last"}]`,
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
		b.stopped = false
		b.Start()
		b.Settle()
		if b.count("fn") != 1 || b.last("fn").Retry != 0 {
			t.Errorf("the next operator has made %d calls", b.count("fn"))
		}
	})
}

// While an operator waits for its calls, and ends, the API servers go on asking it, also about the writes of these calls.
func TestReviewsGoOnWhileAnOperatorEnds(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	path := writeFile(t, t.TempDir(), "operator.yaml", []byte("kopf: v1\nhandlers:\n- {validate: kopfexamples, id: fn, url: '"+server.URL+"'}"))
	program, err := serve.Load(t.Context(), serve.Options{Files: []string{path}, Logger: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = program.Close() }()
	if err := program.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, end := range []func(){func() {}, program.TurnAway} {
		end()
		if outcome := kopftest.Call(t, serve.AdmissionFunction(program, "validate"), newExample(`{size: 1}`)); outcome.Err != nil {
			t.Error(outcome.Err)
		}
	}
}

const named = oneWorker + "settings: {name: test}\n"

// owned returns a child of an example.
func owned(of *unstructured.Unstructured, name, color string) *corev1.ConfigMap {
	child := newConfig(name, color)
	child.OwnerReferences = []metav1.OwnerReference{{APIVersion: of.GetAPIVersion(), Kind: of.GetKind(), Name: of.GetName(), UID: of.GetUID()}}
	return child
}

// A handler of children is called for each change of a child. Its patch is about the parent.
func TestAParentHearsOfItsChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, named, `[{"child": "kopfexamples", "children": "configmaps", "id": "heard", "retries": 2}]`, func(c *protocol.Call) string {
			if c.Reason == "update" && c.Retry == 0 {
				return `{"error": {"message": "not yet", "delay": 1}}`
			}
			return fmt.Sprintf(`{"patch": {"metadata": {"labels": {"children": "%d"}}}}`, len(c.Children))
		})
		parent := newExample(`{}`)
		b.Create(parent)
		b.Settle()
		child := owned(parent, "one", "red")
		b.Create(child)
		b.Settle()
		call := b.last("heard")
		if call.Kind != protocol.Child || call.Reason != "create" || call.Name != "one" || call.UID != string(parent.GetUID()) || call.Initial || call.Moved {
			t.Errorf("got the call %+v", call)
		}
		if !strings.Contains(string(call.Child), `"color":"red"`) || len(call.Children) != 1 || call.Old != nil || len(call.Diff) == 0 {
			t.Errorf("got the child %s of %d, the state %s, and the difference %v", call.Child, len(call.Children), call.Old, call.Diff)
		}
		b.Patch(child, `{"data": {"color": "blue"}}`)
		b.Advance(time.Minute)
		call = b.last("heard")
		if diff, _ := json.Marshal(call.Diff); call.Reason != "update" || call.Retry != 1 || string(diff) != `[["change",["data","color"],"red","blue"]]` {
			t.Errorf("got the call %+v with the difference %s", call, diff)
		}
		b.Get(parent)
		if got := parent.GetLabels()["children"]; got != "1" {
			t.Errorf("the label of the parent is %q", got)
		}
		b.Restart()
		if call := b.last("heard"); !call.Initial || call.Reason != "resume" || call.Child != nil || len(call.Children) != 1 {
			t.Errorf("got the call %+v after a restart", call)
		}
		b.Delete(child)
		b.Settle()
		if call := b.last("heard"); call.Reason != "delete" || !strings.Contains(string(call.Child), `"color":"blue"`) || len(call.Children) != 0 || call.New != nil {
			t.Errorf("got the call %+v for a deleted child", call)
		}
	})
}

// A handler of drift decides which changes of others stay.
func TestDriftIsDecided(t *testing.T) {
	for answer, want := range map[string]map[string]string{
		`{}`:                                     {"a": "wanted", "b": "wanted"},
		`{"resolution": "restore"}`:              {"a": "wanted", "b": "wanted"},
		`{"resolution": "accept"}`:               {"a": "changed", "b": "changed"},
		`{"resolution": {"accept": ["data.a"]}}`: {"a": "changed", "b": "wanted"},
		`{"error": {"message": "no", "permanent": true}}`: {"a": "changed", "b": "changed"},
	} {
		t.Run(answer, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, named, `[{"ensure": "kopfexamples", "id": "children"}, {"drift": "kopfexamples", "id": "decide", "ensuredBy": ["children"]}]`, func(c *protocol.Call) string {
					if c.Kind == protocol.Ensure {
						return `{"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child"}, "data": {"a": "wanted", "b": "wanted"}}]}`
					}
					return answer
				})
				b.Create(newExample(`{}`))
				b.Settle()
				child := newConfig("child", "")
				b.Patch(child, `{"data": {"a": "changed", "b": "changed"}}`)
				b.Advance(time.Minute)
				b.Get(child)
				if !maps.Equal(child.Data, want) {
					t.Errorf("got the child %v, want %v", child.Data, want)
				}
				call := b.last("decide")
				drift := call.Drift
				if call.Kind != protocol.Drifted || call.Name != "one" || !strings.Contains(string(call.Child), `"changed"`) || drift.EnsuredBy != "children" || drift.Deleted ||
					drift.Kind != "ConfigMap" || drift.Namespace != "default" || drift.Name != "child" || len(drift.Fields) != 2 {
					t.Fatalf("got the call %+v with the drift %+v", call, drift)
				}
				if f := drift.Fields[0]; f.Path != "data.a" || f.Manager == "" || f.Since == nil || string(f.Wanted) != `"wanted"` || string(f.Found) != `"changed"` {
					t.Errorf("got the field %+v", f)
				}
			})
		})
	}
}

// The deletion of a child is a drift without a child and without fields.
func TestADeletedChildIsADrift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, named, `[{"ensure": "kopfexamples", "id": "children"}, {"drift": "kopfexamples", "id": "decide"}]`, func(c *protocol.Call) string {
			if c.Kind == protocol.Ensure {
				return `{"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child"}}]}`
			}
			return `{}`
		})
		b.Create(newExample(`{}`))
		b.Settle()
		child := newConfig("child", "")
		b.Delete(child)
		b.Advance(time.Minute)
		if call := b.last("decide"); !call.Drift.Deleted || call.Child != nil || len(call.Drift.Fields) != 0 || !b.Exists(child) {
			t.Errorf("got the call %+v with the drift %+v, and the child exists: %v", call, call.Drift, b.Exists(child))
		}
	})
}

// Objects are converted as answers say, and errors of answers reach the user.
func TestObjectsAreConverted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, oneWorker, `[
			{"convert": "sites", "id": "turn", "from": "v1beta1", "to": "v1", "param": "endpoints"},
			{"convert": "sites", "id": "turn", "from": "v1", "to": "v1beta1", "param": "endpoint"},
			{"convert": "sites", "id": "same", "from": "v1alpha1", "to": "v1beta1"},
			{"convert": "sites", "id": "same", "from": "v1beta1", "to": "v1alpha1"},
			{"event": "sites.v1beta1.kopf.dev", "id": "seen"}
		]`, func(c *protocol.Call) string {
			if c.Kind != protocol.Convert {
				return `{}`
			}
			var object map[string]any
			if err := json.Unmarshal(c.Object, &object); err != nil {
				t.Error(err)
			}
			spec, _ := object["spec"].(map[string]any)
			switch owner := spec["owner"]; {
			case owner == "bad":
				return `{"error": {"message": "the owner is bad"}}`
			case owner == "forgotten":
				return `{}`
			case c.Handler == "turn" && c.To == "v1":
				spec["endpoints"] = []any{spec["endpoint"]}
				delete(spec, "endpoint")
			case c.Handler == "turn":
				endpoints, _ := spec["endpoints"].([]any)
				spec["endpoint"] = endpoints[0]
				delete(spec, "endpoints")
			}
			data, _ := json.Marshal(map[string]any{"object": object})
			return string(data)
		})
		b.Settle()
		site := kopftest.Object(`{apiVersion: kopf.dev/v1beta1, kind: Site, metadata: {namespace: default, name: one}, spec: {owner: web, endpoint: {host: a}}}`)
		b.Create(site)
		site.SetAPIVersion("kopf.dev/v1")
		b.Get(site)
		if got := fmt.Sprint(site.Object["spec"]); got != "map[endpoints:[map[host:a]] owner:web]" {
			t.Errorf("got %s", got)
		}
		call := b.last("turn")
		if call.Kind != protocol.Convert || call.From != "v1beta1" || call.To != "v1" || call.Param != "endpoints" || call.Name != "one" || call.UID == "" || call.Resource != nil {
			t.Errorf("got the call %+v", call)
		}
		for owner, want := range map[string]string{"bad": "the owner is bad", "forgotten": "the answer of the conversion has no object"} {
			site := kopftest.Object(`{apiVersion: kopf.dev/v1beta1, kind: Site, metadata: {namespace: default, name: ` + owner + `}, spec: {owner: ` + owner + `}}`)
			b.Create(site)
			site.SetAPIVersion("kopf.dev/v1")
			err := b.Client().Get(t.Context(), client.ObjectKeyFromObject(site), site)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", owner, err, want)
			}
		}
	})
}

// A rollout reaches one step of the objects after the other, and conditions have the outcome of the handlers.
func TestARolloutStopsAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := false
		b := newBench(t, oneWorker+"conditions: [kopfexamples]\n", `[{"create": "kopfexamples", "id": "fn", "revision": "REVISION", "rollout": [1, "50%"]}]`, func(*protocol.Call) string {
			if fails {
				return `{"error": {"message": "no", "permanent": true}}`
			}
			return `{}`
		})
		for i := range 4 {
			object := newExample(`{}`)
			object.SetName(fmt.Sprint("object-", i))
			b.Create(object)
		}
		b.Advance(time.Minute)
		object := newExample(`{}`)
		object.SetName("object-0")
		b.Get(object)
		if conditions := fmt.Sprint(object.Object["status"]); !strings.Contains(conditions, "type:Ready") {
			t.Errorf("got the status %s", conditions)
		}
		if b.count("fn") != 4 {
			t.Errorf("the handler was called %d times for 4 objects", b.count("fn"))
		}
		fails = true
		b.revision = "2"
		b.Restart()
		b.Advance(time.Minute)
		if b.count("fn") != 5 {
			t.Errorf("the handler was called %d times under the new revision, want 1", b.count("fn")-4)
		}
	})
}

// The roles of an operator have what its declarations need.
func TestTheRolesOfAllKindsAreDerived(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	path := writeFile(t, t.TempDir(), "operator.yaml", []byte(`
kopf: v1
settings: {name: shops}
conditions: [deployments.v1.apps]
needs:
- {resource: [v1, secrets], verbs: [get]}
handlers:
- {index: [v1, nodes], id: nodes, run: [a]}
- {child: deployments.v1.apps, children: [v1, pods], id: pods, run: [a]}
- {ensure: deployments.v1.apps, id: web, watchIndices: [nodes], run: [a]}
- {drift: deployments.v1.apps, id: decide, run: [a]}
- {convert: sites.kopf.dev, id: there, from: v1, to: v1beta1, run: [a]}
- {convert: sites.kopf.dev, id: back, from: v1beta1, to: v1, run: [a]}
`))
	commands, end, err := serve.Command{}.Commands(t.Context(), []string{path})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	}()
	var out strings.Builder
	root := &cobra.Command{Use: "kopf"}
	root.AddCommand(commands...)
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs([]string{"manifests", "--crds", "../../examples/crd/sites.yaml"})
	if err := root.Execute(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{
		"resources: [nodes]\n    verbs: [list, watch]", "resources: [pods]\n    verbs: [list, watch]", "resources: [secrets]\n    verbs: [get]",
		"resources: [deployments]\n    verbs: [get, list, watch, patch]", "resources: [deployments/status]\n    verbs: [patch]",
		"resourceNames: [sites.kopf.dev]\n    verbs: [get, patch]", "operator.yaml:6", "name: WEBHOOK_SERVICE",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the manifests do not have %q:\n%s", want, out.String())
		}
	}
}
