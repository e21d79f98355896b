package explain

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/internal/request"
	"github.com/kopf-go/kopf/pkg/cli/inspect"
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

// sends sends a request about the object "one", and expects an answer.
func (s *scene) sends(r inspect.Request, want string) {
	s.t.Helper()
	said, err := s.send("one", r)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(said).To(gomega.Equal(want))
}

// refuses expects that nothing is written.
func (s *scene) refuses(obj *unstructured.Unstructured, r inspect.Request, want string) {
	s.t.Helper()
	before, err := cluster.Current(obj)()
	s.Expect(err).NotTo(gomega.HaveOccurred())
	_, err = s.send(obj.GetName(), r)
	s.Expect(err).To(gomega.MatchError(want))
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
		said          string
	}{
		request.Retry: {later(1), "- fn (create) waits", "fn create 0", "fn create 1", "Requested. A running operator will retry the handler fn now."},
		request.Rerun: {succeed, "It was handled", "fn create 0", "fn resume 0", "Requested. A running operator will rerun the handler fn now."},
		request.Skip:  {later(9), "- fn (create) waits", "fn create 0", "", "Requested. A running operator will skip the handler fn now."},
	}
	for verb, test := range tests {
		t.Run(string(verb), func(t *testing.T) {
			s := newScene(t)
			calls := &operators.Calls{}
			s.OnCreate(examples, noted(calls, "fn", test.outcome), kopf.ID("fn"))
			operator := s.start()
			obj := s.create("one")
			s.Eventually(calls.All).Should(gomega.Equal([]string{test.first}))
			s.says("one", test.state)

			s.sends(inspect.Request{Verb: verb, Handler: "fn"}, test.said)
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
			s.Expect(s.explain("one")).NotTo(gomega.ContainSubstring("Requests"))
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
	s.sends(inspect.Request{Verb: request.Suspend, Remove: true}, "kopfexample/one is not suspended: nothing was written.")

	until := time.Now().Add(time.Hour).Truncate(time.Second).UTC()
	s.sends(inspect.Request{Verb: request.Suspend, Until: until}, "kopfexample/one is suspended until "+until.Format(time.RFC3339)+": no handlers are called, and its deletion is held.")
	s.patch(obj, `{"spec":{"size":1}}`)
	s.says("one", "The object is suspended until "+until.Format(time.RFC3339), "- fn (update) waits, because the object is suspended\n      → ./my-operator unsuspend kopfexamples.kopf.dev/one -n NAMESPACE")
	s.sends(inspect.Request{Verb: request.Rerun, Handler: "created"}, "Requested. The object is suspended: an operator honors the request when that has ended.")
	operator.Stop()
	s.start()
	other := s.create("other")
	s.isHandled(other)
	s.Expect(calls.All()).To(gomega.BeEmpty())

	s.sends(inspect.Request{Verb: request.Suspend, Remove: true}, "kopfexample/one is no longer suspended: a running operator handles what has changed meanwhile as one change.")
	s.Eventually(calls.All).Should(gomega.Equal([]string{"fn update 0"}))
}

// A request that has no effect is removed, and the answer does not say that it had one.
func TestASuspensionWithoutEffectIsRemoved(t *testing.T) {
	s := newScene(t)
	s.OnUpdate(examples, create, kopf.ID("fn"))
	obj := s.create("one")
	for requested, want := range map[string]string{
		"2020-01-01T00:00:00Z": "kopfexample/one is not suspended: that has ended at 2020-01-01T00:00:00Z, and the request was removed.",
		"24h":                  `kopfexample/one was not suspended: the request had no effect, and was removed, because the value "24h" is neither a time, such as "2026-01-31T12:00:00Z", nor "forever".`,
	} {
		asking("suspend", requested)(s, obj)
		s.sends(inspect.Request{Verb: request.Suspend, Remove: true}, want)
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
	s.says("one", "- createFn (create) waits until ")

	s.refuses(obj, inspect.Request{Verb: request.Retry, Handler: "createfn"}, "retry createfn is refused, and nothing was written: no handler of this resource has the id createfn; did you mean createFn? Handlers to retry now: createFn.")
	s.refuses(obj, inspect.Request{Verb: request.Retry, Handler: "quick"}, "retry quick is refused, and nothing was written: it has ended already. Handlers to retry now: createFn. To call it again: ./my-operator rerun kopfexamples.kopf.dev/one -n "+s.namespace+" quick")
	s.refuses(obj, inspect.Request{Verb: request.Rerun, Handler: "clean"}, "rerun clean is refused, and nothing was written: it is a deletion handler, and the object is not being deleted. Handlers to rerun now: quick.")
	s.refuses(obj, inspect.Request{Verb: request.Rerun, Handler: "createFn"}, "rerun createFn is refused, and nothing was written: it has not ended, and waits for its next attempt. Handlers to rerun now: quick. To call it now: ./my-operator retry kopfexamples.kopf.dev/one -n "+s.namespace+" createFn")
	s.refuses(obj, inspect.Request{Verb: request.Skip, Handler: "watch"}, "skip watch is refused, and nothing was written: it is a handler of watch events, and only handlers of changes can be retried, rerun, or skipped. Handlers to skip now: createFn.")
	s.sends(inspect.Request{Verb: request.Skip, Handler: "createFn"}, "Requested. A running operator will skip the handler createFn now.")
	s.honored(obj, request.Skip)
	s.isHandled(obj)
	s.refuses(obj, inspect.Request{Verb: request.Retry, Handler: "createFn"}, "retry createFn is refused, and nothing was written: createFn does not wait for a retry. There is no handler to retry now. To call it again: ./my-operator rerun kopfexamples.kopf.dev/one -n "+s.namespace+" createFn")

	s.Expect(cluster.Client().Delete(t.Context(), obj)).To(gomega.Succeed())
	s.says("one", "- clean (delete) waits until ")
	s.refuses(obj, inspect.Request{Verb: request.Skip, Handler: "clean"}, "skip clean is refused, and nothing was written: nothing would clean up for it; add --abandon if you want that. Handlers to skip now: clean.")
	s.sends(inspect.Request{Verb: request.Skip, Handler: "clean", Abandon: true}, "Requested. A running operator will skip the handler clean now.")
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
		s.refuses(obj, inspect.Request{Verb: verb, Handler: id, Abandon: verb == request.Skip}, fmt.Sprintf(
			"%s %s is refused, and nothing was written: the object is being deleted without the finalizer of this operator, so no handlers of changes are called for it anymore. There is no handler to %s now.", verb, id, verb))
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
	s.sends(inspect.Request{Verb: request.Rerun, Handler: "publish"}, "Requested. A running operator will rerun the handler publish now.")
	s.says("one", "- publish (create) waits until ")
	s.refuses(obj, inspect.Request{Verb: request.Rerun, Handler: "publish"}, "rerun publish is refused, and nothing was written: it has not ended, and waits for its next attempt. Handlers to rerun now: children. To call it now: ./my-operator retry kopfexamples.kopf.dev/one -n "+s.namespace+" publish")
	s.sends(inspect.Request{Verb: request.Retry, Handler: "publish"}, "Requested. A running operator will retry the handler publish now.")
	s.says("one", "- publish (create) waits until ", " after 2 attempts, the last error: the disk is not ready")
}

func TestARequestThatReplacesAnotherOneSaysSo(t *testing.T) {
	s := newScene(t)
	s.OnCreate(examples, noted(&operators.Calls{}, "a", succeed), kopf.ID("a"))
	s.OnCreate(examples, noted(&operators.Calls{}, "b", succeed), kopf.ID("b"))
	obj := s.create("one")
	operator := s.start()
	s.isHandled(obj)
	operator.Stop()
	s.sends(inspect.Request{Verb: request.Rerun, Handler: "a"}, "Requested. A running operator will rerun the handler a now.")
	s.sends(inspect.Request{Verb: request.Rerun, Handler: "b"}, "Requested. A running operator will rerun the handler b now. It replaces the request to rerun a, which no operator has honored.")
}

// Under a freeze, no operator runs the handler now.
func TestARequestUnderAFreezeSaysWhoPausesTheOperators(t *testing.T) {
	const now = "Requested. A running operator will rerun the handler fn now."
	const paused = "Requested. The operators are paused by me@here: one honors the request when that has ended."
	const perhaps = "Requested. A running operator will rerun the handler fn now, or, if me@here pauses it, when that has ended."
	tests := map[string]struct {
		priority int // of the freeze
		scoped   bool
		joined   string
		want     string
	}{
		"a freeze":                 {100, true, entry("op-a", 7), paused},
		"a freeze of the priority": {7, true, entry("op-a", 7), paused},
		"a lower freeze":           {6, true, entry("op-a", 7), now},
		"a freeze of a namespace":  {100, false, entry("op-a", 7), perhaps},
		"a freeze of none":         {100, true, "", perhaps},
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
			s.sends(inspect.Request{Verb: request.Rerun, Handler: "fn"}, test.want)
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
	s.sends(inspect.Request{Verb: request.Rerun, Handler: "fn"}, "Requested. A running operator will rerun the handler fn now.")
	s.honored(obj, request.Rerun)
	s.Eventually(calls.All).Should(gomega.HaveLen(2))
	operator.Stop()
	s.sends(inspect.Request{Verb: request.Suspend}, "kopfexample/one is suspended until you end it: no handlers are called, and its deletion is held.")
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
