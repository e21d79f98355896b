package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/internal/request"
	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/peering"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

const prefix = "kopf.zalando.org/"

// send sends a request as the command does.
func (s *scene) send(name string, r inspect.Request) (string, error) {
	s.t.Helper()
	return s.connect().Send(s.t.Context(), cluster.Config(), inspect.Target{Kind: "kopfexample", Namespace: s.namespace, Name: name}, r)
}

// sends sends a request about the object "one", and records the answer.
func (s *scene) sends(r inspect.Request) {
	s.t.Helper()
	said, err := s.send("one", r)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.record(r, said)
}

// record adds an answer to the dialog of the test, which is compared in the end. Tests can ask in any order.
func (s *scene) record(r inspect.Request, answer string) {
	s.t.Helper()
	if s.dialog == nil {
		s.t.Cleanup(func() { sentences.Check(s.t, "requests", strings.Join(slices.Sorted(slices.Values(s.dialog)), "")) })
	}
	s.dialog = append(s.dialog, fmt.Sprintf("%s %s\n  %s\n", r.Verb, r.Handler, neutral(s, answer)))
}

// refuses expects that nothing is written, and records the answer.
func (s *scene) refuses(obj *unstructured.Unstructured, r inspect.Request) {
	s.t.Helper()
	before, err := cluster.Current(obj)()
	s.Expect(err).NotTo(gomega.HaveOccurred())
	_, err = s.send(obj.GetName(), r)
	s.Expect(err).To(gomega.HaveOccurred())
	s.record(r, err.Error())
	after, err := cluster.Current(obj)()
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(after.GetResourceVersion()).To(gomega.Equal(before.GetResourceVersion()))
}

// honored waits until the operator has stored the request, and returns its value.
func (s *scene) honored(obj *unstructured.Unstructured, verb request.Verb) string {
	s.t.Helper()
	value := ""
	s.Eventually(func(g gomega.Gomega) {
		current, err := cluster.Current(obj)()
		g.Expect(err).NotTo(gomega.HaveOccurred())
		value = current.GetAnnotations()[prefix+verb.Name()]
		g.Expect(request.ParseHandled(current.GetAnnotations()[prefix+request.Handled])[verb]).To(gomega.Equal(value))
	}).Should(gomega.Succeed())
	return value
}

// noted declares a handler that takes notes, and returns the outcome of its attempts.
func noted(calls *operators.Calls, word string, outcome func(c *kopf.Change) error) func(context.Context, *kopf.Change) error {
	return func(_ context.Context, c *kopf.Change) error {
		calls.Note("%s %s %d", word, c.Reason(), c.Retry())
		return outcome(c)
	}
}

func succeed(*kopf.Change) error { return nil }

// later fails the first attempts, with delays that no test waits for.
func later(attempts int) func(c *kopf.Change) error {
	return func(c *kopf.Change) error {
		if c.Retry() < attempts {
			return kopf.Temporary(fmt.Errorf("attempt %d", c.Retry()), time.Hour)
		}
		return nil
	}
}

// Each request of a command is honored once: neither a restart repeats it, nor a pipeline that puts
// the annotation back.
func TestRequestsOfCommandsAreHonoredOnce(t *testing.T) {
	tests := map[request.Verb]struct {
		outcome       func(*kopf.Change) error
		state         string // after the first call
		first, second string // calls
	}{
		request.Retry: {later(1), "fn (create): waiting", "fn create 0", "fn create 1"},
		request.Rerun: {succeed, "fn (create): done", "fn create 0", "fn resume 0"},
		request.Skip:  {later(9), "fn (create): waiting", "fn create 0", ""},
	}
	for verb, test := range tests {
		t.Run(string(verb), func(t *testing.T) {
			s := newScene(t)
			calls := &operators.Calls{}
			s.OnCreate(examples, noted(calls, "fn", test.outcome), kopf.ID("fn"))
			operator := s.start()
			obj := s.create("one")
			s.Eventually(calls.All).Should(gomega.Equal([]string{test.first}))
			s.shows("one", test.state)

			s.sends(inspect.Request{Verb: verb, Handler: "fn"})
			value := s.honored(obj, verb)
			want := []string{test.first}
			if test.second != "" {
				want = append(want, test.second)
			}
			s.Eventually(calls.All).Should(gomega.Equal(want))
			s.isHandled(obj)

			operator.Stop()
			s.patch(obj, fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, prefix+verb.Name()))
			s.start()
			s.patch(obj, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, prefix+verb.Name(), value))
			s.settled(obj)
			s.Expect(calls.All()).To(gomega.Equal(want))
			s.states("one", "afterwards", "noop", "fn (create): done")
		})
	}
}

// settled waits until the operator has seen all changes of the object so far: it has handled
// another object that was created later.
func (s *scene) settled(obj *unstructured.Unstructured) {
	s.t.Helper()
	s.patch(obj, `{"metadata":{"labels":{"seen":"yes"}}}`)
	s.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation(prefix+"last-handled-configuration", gomega.ContainSubstring(`"seen":"yes"`)))
}

func TestSuspensionsOfCommandsAreHonored(t *testing.T) {
	s := newScene(t)
	calls := &operators.Calls{}
	s.OnUpdate(examples, noted(calls, "fn", succeed), kopf.ID("fn"))
	s.OnCreate(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("created"))
	operator := s.start()
	obj := s.create("one")
	s.isHandled(obj)
	s.sends(inspect.Request{Verb: request.Suspend, Remove: true})

	until := time.Now().Add(time.Hour).Truncate(time.Second).UTC()
	s.sends(inspect.Request{Verb: request.Suspend, Until: until})
	s.patch(obj, `{"spec":{"size":1}}`)
	s.states("one", "suspended", "update", `add spec: {"size":1}`, "held", "fn (update): suspended", "created (create): done")
	s.Expect(s.explain()).To(gomega.ContainSubstring(until.Format(time.RFC3339)))
	s.sends(inspect.Request{Verb: request.Rerun, Handler: "created"})
	operator.Stop()
	s.start()
	other := s.create("other")
	s.isHandled(other)
	s.Expect(calls.All()).To(gomega.BeEmpty())

	s.sends(inspect.Request{Verb: request.Suspend, Remove: true})
	s.Eventually(calls.All).Should(gomega.Equal([]string{"fn update 0"}))
}

// A request that has no effect is removed, and the answer does not say that it had one.
func TestASuspensionWithoutEffectIsRemoved(t *testing.T) {
	s := newScene(t)
	s.OnUpdate(examples, create, kopf.ID("fn"))
	obj := s.create("one")
	for _, requested := range []string{"2020-01-01T00:00:00Z", "24h"} {
		asking("suspend", requested)(s, obj)
		s.sends(inspect.Request{Verb: request.Suspend, Remove: true})
		s.Expect(cluster.Current(obj)()).To(testenv.HavePath("metadata.annotations", nil))
	}
}

func TestRefusedRequestsNameTheCommandAndTheHandlers(t *testing.T) {
	s := newScene(t)
	s.OnCreate(examples, func(context.Context, *kopf.Change) error { return kopf.Temporary(errors.New("not yet"), time.Hour) }, kopf.ID("createFn"))
	s.OnCreate(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("quick"))
	s.OnDelete(examples, func(context.Context, *kopf.Change) error { return kopf.Temporary(errors.New("not yet"), time.Hour) }, kopf.ID("clean"))
	s.OnEvent(examples, func(context.Context, *kopf.WatchEvent) error { return nil }, kopf.ID("watch"))
	s.start()
	obj := s.create("one")
	s.shows("one", "createFn (create): waiting")

	s.refuses(obj, inspect.Request{Verb: request.Retry, Handler: "createfn"})
	s.refuses(obj, inspect.Request{Verb: request.Retry, Handler: "quick"})
	s.refuses(obj, inspect.Request{Verb: request.Rerun, Handler: "clean"})
	s.refuses(obj, inspect.Request{Verb: request.Rerun, Handler: "createFn"})
	s.refuses(obj, inspect.Request{Verb: request.Skip, Handler: "watch"})
	s.sends(inspect.Request{Verb: request.Skip, Handler: "createFn"})
	s.honored(obj, request.Skip)
	s.isHandled(obj)
	s.refuses(obj, inspect.Request{Verb: request.Retry, Handler: "createFn"})

	s.Expect(cluster.Client().Delete(t.Context(), obj)).To(gomega.Succeed())
	s.shows("one", "clean (delete): waiting")
	s.refuses(obj, inspect.Request{Verb: request.Skip, Handler: "clean"})
	s.sends(inspect.Request{Verb: request.Skip, Handler: "clean", Abandon: true})
	s.Eventually(cluster.Exists(obj)).Should(gomega.BeFalse())
}

// No operator honors requests about an object that is being deleted, and that it does not hold.
func TestRequestsAboutObjectsThatOthersHoldAreRefused(t *testing.T) {
	s := newScene(t)
	s.OnCreate(examples, create, kopf.ID("fn"))
	s.OnDelete(examples, create, kopf.ID("clean"))
	obj := s.create("one")
	s.releaseAfterwards()
	s.patch(obj, `{"metadata":{"finalizers":["example.com/other"]}}`)
	s.Expect(cluster.Client().Delete(t.Context(), obj)).To(gomega.Succeed())
	for verb, id := range map[request.Verb]string{request.Retry: "fn", request.Rerun: "fn", request.Skip: "clean"} {
		s.refuses(obj, inspect.Request{Verb: verb, Handler: id, Abandon: verb == request.Skip})
	}
}

// A plan does not count a call of a handler that will be skipped.
func TestHandlersThatWillBeSkippedAreNotPlanned(t *testing.T) {
	s := newScene(t)
	s.OnCreate(examples, create, kopf.ID("fn"))
	s.OnCreate(examples, create, kopf.ID("other"))
	asking("skip", "1 fn")(s, s.create("one"))
	plan, err := s.connect().NewPlan(t.Context(), s.namespace)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(plan.Resources).To(gomega.HaveLen(1))
	s.Expect(plan.Resources[0].Calls).To(gomega.Equal(map[string]int{"other": 1}))
}

// A handler that is called again on request, and waits, is retried, not rerun.
func TestARerunThatWaitsIsRetried(t *testing.T) {
	s := newScene(t)
	s.OnCreate(examples, failingOnRequest, kopf.ID("publish"))
	s.OnCreate(examples, create, kopf.ID("children"))
	s.start()
	obj := s.create("one")
	s.isHandled(obj)
	s.sends(inspect.Request{Verb: request.Rerun, Handler: "publish"})
	s.shows("one", "publish (create): waiting")
	s.refuses(obj, inspect.Request{Verb: request.Rerun, Handler: "publish"})
	s.sends(inspect.Request{Verb: request.Retry, Handler: "publish"})
	s.states("one", "retried", "resume", "publish (create): waiting", "children (create): done")
}

func TestARequestThatReplacesAnotherOneSaysSo(t *testing.T) {
	s := newScene(t)
	s.OnCreate(examples, noted(&operators.Calls{}, "a", succeed), kopf.ID("a"))
	s.OnCreate(examples, noted(&operators.Calls{}, "b", succeed), kopf.ID("b"))
	obj := s.create("one")
	operator := s.start()
	s.isHandled(obj)
	operator.Stop()
	s.sends(inspect.Request{Verb: request.Rerun, Handler: "a"})
	s.sends(inspect.Request{Verb: request.Rerun, Handler: "b"})
}

// Under a freeze, no operator runs the handler now.
func TestARequestUnderAFreezeSaysWhoPausesTheOperators(t *testing.T) {
	tests := map[string]struct {
		priority int // of the freeze
		scoped   bool
		joined   string
		facts    []string
	}{
		"a freeze":                 {100, true, entry("op-a", 7), []string{"resume", "held", "fn (create): paused", "requested"}},
		"a freeze of the priority": {7, true, entry("op-a", 7), []string{"resume", "held", "fn (create): paused", "requested"}},
		"a lower freeze":           {6, true, entry("op-a", 7), []string{"resume", "fn (create): due", "requested"}},
		"a freeze of a namespace":  {100, false, entry("op-a", 7), []string{"resume", "perhaps held", "fn (create): due", "requested"}},
		"a freeze of none":         {100, true, "", []string{"resume", "perhaps held", "fn (create): due", "requested"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.OnCreate(examples, noted(&operators.Calls{}, "fn", succeed), kopf.ID("fn"))
			obj := s.create("one")
			operator := s.start()
			s.isHandled(obj)
			operator.Stop()
			s.settings.Peering.Name, s.settings.Peering.Priority = "shops", 7
			if test.scoped {
				s.settings.Scope.Namespaces = []string{s.namespace}
			}
			object := testenv.NewObject("KopfPeering", s.namespace, "shops", nil)
			s.Expect(cluster.Client().Create(t.Context(), object)).To(gomega.Succeed())
			s.patch(object, `{"status":{`+test.joined+`}}`)
			_, err := peering.Freeze(t.Context(), cluster.Config(), peering.Target{Name: "shops", Namespace: s.namespace}, peering.FreezeOptions{Identity: "me@here", Priority: test.priority, Lifetime: time.Hour})
			s.Expect(err).NotTo(gomega.HaveOccurred())
			s.sends(inspect.Request{Verb: request.Rerun, Handler: "fn"})
			s.states("one", "", test.facts...)
		})
	}
}

// Requests are in no essence: an operator that knows nothing about them sees no change, as Kopf,
// whose rule is that annotations with its prefix do not count. Here, that is an operator that
// ignores requests.
func TestRequestsDoNotDisturbATakeover(t *testing.T) {
	s := newScene(t)
	calls := &operators.Calls{}
	s.OnCreate(examples, noted(calls, "fn", succeed), kopf.ID("fn"))
	s.OnUpdate(examples, noted(calls, "changed", succeed), kopf.ID("changed"))
	operator := s.start()
	obj := s.create("one")
	s.isHandled(obj)
	s.sends(inspect.Request{Verb: request.Rerun, Handler: "fn"})
	s.honored(obj, request.Rerun)
	s.Eventually(calls.All).Should(gomega.HaveLen(2))
	operator.Stop()
	s.sends(inspect.Request{Verb: request.Suspend})
	before, err := cluster.Current(obj)()
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(before.GetAnnotations()[prefix+"last-handled-configuration"]).NotTo(gomega.ContainSubstring("request"))

	s.settings.Requests.Disabled = true
	s.start()
	other := s.create("other")
	s.isHandled(other)
	after, err := cluster.Current(obj)()
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(after.GetResourceVersion()).To(gomega.Equal(before.GetResourceVersion()))
	s.Expect(calls.All()).To(gomega.Equal([]string{"fn create 0", "fn resume 0", "fn create 0"}))
	_, err = s.send("one", inspect.Request{Verb: request.Retry, Handler: "fn"})
	s.Expect(err).To(gomega.MatchError("the operator ignores requests: Settings.Requests.Disabled is set"))
}
