package explain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/cli/inspect"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/rollout"
	"github.com/kopf-go/kopf/pkg/peering"
	"github.com/kopf-go/kopf/test/testenv"
)

func TestARunningHandlerIsNotKnownToRun(t *testing.T) {
	s := newScene(t)
	called, attempts := make(chan error), 0
	s.OnCreate(examples, func(ctx context.Context, _ *kopf.Change) error {
		attempts++
		select {
		case err := <-called:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}, kopf.ID("fn"), kopf.Retries(3))
	s.start()
	obj := s.create("one")
	s.says("one", "It was never handled: an operator handles it as a creation.",
		"- fn (create) will run (attempt 1 of 3), if an operator is running",
		"Whether a handler that will run is running already is not decidable here: ask the operator by --running, or see its log with --verbose. If it elects a leader, --operator-namespace says whether it is running.")

	called <- kopf.Temporary(errors.New("the disk is missing"), time.Hour)
	s.says("one", "That has begun, and has not ended.", "- fn (create) waits until ",
		"after 1 attempt (attempt 2 of 3), the last error: the disk is missing", "→ to call it now: ./my-operator retry kopfexamples.kopf.dev/one -n NAMESPACE fn")
	s.Expect(s.explain("one")).NotTo(gomega.ContainSubstring("already running"))

	s.patch(obj, `{"metadata":{"annotations":{"kopf.zalando.org/request-retry":"1 fn"}}}`)
	called <- kopf.Permanent(errors.New("there is no such disk"))
	s.says("one", "It was handled, and has not changed since.", "- fn (create) has nothing to do: the object was handled before",
		"The object does not say whether the handlers have succeeded or failed for good, because it was handled without kopf.Conditions: see its events and the log. To call a handler again: ./my-operator rerun kopfexamples.kopf.dev/one -n NAMESPACE fn")
}

func TestChildrenAreExplained(t *testing.T) {
	s := newScene(t)
	s.settings.Name = "shops.example.com"
	s.Ensure(examples, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		labels := map[string]string{"app": c.Name()}
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.Name(), Namespace: c.Namespace()}, Data: map[string]string{"color": "red", "size": "1"}}
		web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: c.Name(), Namespace: c.Namespace()}, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}}},
		}}
		return []client.Object{config, web}, nil
	}, kopf.ID("shop"), kopf.WaitReady())
	s.OnDrift(examples, func(context.Context, *kopf.Drift) (kopf.Resolution, error) {
		return kopf.AcceptFields("data.color"), nil
	}, kopf.ID("painted"))

	s.create("before")
	s.says("before", "- shop (ensure) will run")

	taken := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "taken", Namespace: s.namespace}}
	s.Expect(cluster.Client().Create(t.Context(), taken)).To(gomega.Succeed())
	s.start()
	s.create("taken")
	s.says("taken", "- shop (ensure) waits until ", "the last error: the child ConfigMap NAMESPACE/taken: the object belongs to")

	s.create("one")
	s.says("one",
		"- shop (ensure) has nothing to do: nothing has changed since the object was handled; it is called again when an operator starts, and when another client changes a child\n      declared at explain/situations_test.go:",
		"- painted (drift) is asked when other clients change children of the object\n      declared at explain/situations_test.go:",
		"- ConfigMap NAMESPACE/one (shop) is ready\n",
		"- Deployment.apps NAMESPACE/one (shop) is not ready: ",
		"; the children of later waves are applied when it is",
		"Whether children differ from what a handler wants, or are missing, is not decidable here, because the handler is not called.")

	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: s.namespace}}
	s.patch(config, `{"data":{"color":"blue","size":"2"}}`)
	s.says("one", "- ConfigMap NAMESPACE/one (shop) is ready; it was accepted that others have changed data.color, until shop returns another value\n")
	s.patch(config, `{"metadata":{"annotations":{"kopf.zalando.org/keep":"true"},"finalizers":["example.com/slow"]}}`)
	s.says("one", "it is never deleted, because of the annotation kopf.zalando.org/keep")
	s.Expect(cluster.Client().Delete(t.Context(), config)).To(gomega.Succeed())
	s.says("one", "- ConfigMap NAMESPACE/one (shop) is being deleted")
	s.patch(config, `{"metadata":{"finalizers":null}}`)

	stranger := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "copy", Namespace: s.namespace, Labels: config.Labels}}
	s.Expect(cluster.Client().Create(t.Context(), stranger)).To(gomega.Succeed())
	s.says("one", "- ConfigMap NAMESPACE/copy (shop) has the label of a child of shop, but the operator has not applied it: it is left alone")

	s.settings.Name = ""
	s.Expect(s.explain("one")).To(gomega.ContainSubstring("The children of the object are unknown here, because settings.Name is not set"))
}

func TestRolloutsAreExplained(t *testing.T) {
	s := newScene(t)
	fail := func(_ context.Context, c *kopf.Change) error {
		if c.Name() == "o1" && c.Reason() == kopf.ReasonUpdate {
			return kopf.Permanent(errors.New("no"))
		}
		return nil
	}
	s.OnCreate(examples, fail, kopf.ID("fn"), kopf.Revision("1"))
	former := s.start()
	for i := range 4 {
		s.isHandled(s.create(fmt.Sprintf("o%d", i)))
	}
	former.Stop()

	s.Registry = kopf.NewRegistry()
	s.settings.Scope.Namespaces = []string{s.namespace}
	s.OnCreate(examples, fail, kopf.ID("fn"), kopf.Revision("2"), kopf.Rollout(rollout.First(1)))
	s.OnUpdate(examples, fail, kopf.ID("fn"), kopf.Revision("2"), kopf.Rollout(rollout.First(1)))
	s.Expect(s.explain("o0")).To(gomega.ContainSubstring("- fn (create, update) will run: an operator with its revision 2 calls it for the object in step 1 of the rollout"))
	plan, err := s.connect().NewPlan(t.Context(), s.namespace)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(plan.Changes()).To(gomega.Equal(4))
	s.Expect(plan.Resources[0].Examples).To(gomega.Equal([]string{s.namespace + "/o0: rollout", s.namespace + "/o1: rollout", s.namespace + "/o2: rollout", s.namespace + "/o3: rollout"}))
	s.Expect(plan.Text(inspect.Style{})).To(gomega.And(
		gomega.ContainSubstring("4 objects would be handled as updates without changes, in the steps of a rollout"),
		gomega.ContainSubstring("fn would be called for 4 objects")))
	s.Expect(s.explain("o2")).To(gomega.ContainSubstring("- fn (create, update) waits for the rollout of its revision 2: step 1 allows 1 of 4 objects, of which 0 have ended, and 2 begin before this one"))

	s.start()
	s.says("o2", "- fn (create, update) waits for the rollout of its revision 2, which is stopped: 1 of 4 objects has failed, such as kopfexamples.kopf.dev/o1 -n NAMESPACE, and 2 wait",
		"→ correct the cause, and then: ./my-operator rerun kopfexamples.kopf.dev/o1 -n NAMESPACE fn")
	plan, err = s.connect().NewPlan(t.Context(), s.namespace)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect([]int{plan.Changes(), plan.Resources[0].Waiting}).To(gomega.Equal([]int{0, 2}))
	s.Expect(plan.Text(inspect.Style{})).To(gomega.And(
		gomega.ContainSubstring("  2 objects wait for a rollout that is stopped, and would not be handled\n  2 objects would not be handled: nothing"),
		gomega.ContainSubstring("  ! The rollout of fn (revision 2) is stopped: 1 of 4 objects has failed, such as kopfexamples.kopf.dev/o1 -n "+s.namespace+", and 2 wait. Correct the cause, and then: ./my-operator rerun kopfexamples.kopf.dev/o1 -n "+s.namespace+" fn\n"),
		gomega.Not(gomega.ContainSubstring("would be called"))))
	s.Expect(s.explain("o1")).To(gomega.ContainSubstring("- fn (create) has failed for good under its revision 2: it is called again on request, or under another revision"))
	s.Expect(s.explain("o0")).To(gomega.ContainSubstring("- fn (create) has nothing to do: the object was handled before"))
}

func TestAdmissionHandlersAreExplained(t *testing.T) {
	s := newScene(t)
	s.settings.Admission.Managed = "shops.example.com"
	review := func(context.Context, *kopf.Admission) error { return errors.New("called") }
	s.OnValidate(examples, review, kopf.ID("check"), kopf.Operations("CREATE", "UPDATE"))
	s.OnMutate(examples, review, kopf.ID("complete"), kopf.Labels(map[string]kopf.Matcher{"app": kopf.Equal("db")}))
	s.OnValidate(examples, review, kopf.ID("restrict"), kopf.When(func(a kopf.Arguments) bool { panic("it is called") }))
	s.create("one")
	text := s.explain("one")
	for _, want := range []string{
		"It has no handlers of changes, so its changes are not tracked.",
		"- check (validate) is called by the API server when a client sends CREATE, UPDATE, unless the operator runs in the namespace NAMESPACE, and at no other time; its filters match the object as it is now\n      → whether the API server knows it: kubectl get validatingwebhookconfigurations shops.example.com -o yaml\n      declared at explain/situations_test.go:",
		"- complete (mutate) is not called for requests that leave the object as it is now: the label app is absent, and the handler wants \"db\"",
		"- restrict (validate) is not decidable here: the API server calls it when a client creates, changes, deletes, or connects to it, unless the operator runs in the namespace NAMESPACE, and a function of its filters decides about each request\n      → send the request as a dry run: kubectl … --dry-run=server",
	} {
		s.Expect(text).To(gomega.ContainSubstring(want))
	}
}

func TestAdmissionOfOtherNamespacesIsExplained(t *testing.T) {
	s := newScene(t)
	s.settings.Scope.Namespaces = []string{"others"}
	s.OnValidate(examples, func(context.Context, *kopf.Admission) error { return nil }, kopf.ID("check"))
	s.create("one")
	s.Expect(s.explain("one")).To(gomega.ContainSubstring("- check (validate) is not called: the webhook configuration of the operator is for the namespaces others alone\n      → serve the namespace, or see what the API server knows: kubectl get validatingwebhookconfigurations -o yaml\n"))
}

func TestTheScopeIsExplained(t *testing.T) {
	s := newScene(t)
	s.settings.Scope.Namespaces = []string{"team-*", "others"}
	s.OnCreate(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("fn"))
	s.create("one")
	s.Expect(s.explain("one")).To(gomega.And(
		gomega.ContainSubstring("Nothing happens now, because\n  - The operator serves the namespaces team-*, others, and NAMESPACE is none of them: it does not see the object.\n"),
		gomega.ContainSubstring("- fn (create) would run\n"),
		gomega.ContainSubstring("The flags and variables of a running operator, such as --namespace and --priority, are unknown here.")))
}

func TestPeersAreExplained(t *testing.T) {
	s := newScene(t)
	s.settings.Peering.Name, s.settings.Scope.Namespaces = "shops", []string{s.namespace}
	s.OnCreate(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("fn"))
	s.create("one")
	const title = "KopfPeering \"shops\" in the namespace \"NAMESPACE\"\n"
	s.Expect(s.peers()).To(gomega.Equal(title + "  - The object does not exist: operators with the flag --peering pause until it does, and others do not see each other.\n"))
	object := testenv.NewObject("KopfPeering", s.namespace, "shops", nil)
	s.Expect(cluster.Client().Create(t.Context(), object)).To(gomega.Succeed())
	s.Expect(s.peers()).To(gomega.Equal(title + "  - No operator has an entry: no operator pauses another one.\n"))

	seen := func(ago time.Duration) string {
		return time.Now().Add(-ago).UTC().Format("2006-01-02T15:04:05.000000-07:00")
	}
	entries := map[string]any{
		"alive@a/1":  map[string]any{"priority": 0, "lifetime": 3600, "lastseen": seen(0)},
		"other@a/2":  map[string]any{"priority": 0, "lifetime": 3600, "lastseen": seen(0)},
		"dead@a/3":   map[string]any{"priority": 100, "lifetime": 60, "lastseen": "2026-01-01T00:00:00.000000+00:00"},
		"strong@a/4": map[string]any{"priority": -1, "lifetime": 3600, "lastseen": seen(0)},
	}
	text, err := json.Marshal(map[string]any{"status": entries})
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.patch(object, string(text))
	s.Expect(s.peers()).To(gomega.Equal(title +
		"  - alive@a/1 (priority 0) is paused by other@a/2, because of the same priority: give them distinct ones by --priority\n" +
		"  - dead@a/3 (priority 100) has expired at 2026-01-01T00:01:00Z, and pauses nothing\n" +
		"  - other@a/2 (priority 0) is paused by alive@a/1, because of the same priority: give them distinct ones by --priority\n" +
		"  - strong@a/4 (priority -1) is paused by alive@a/1, other@a/2, because of a higher priority\n"))
	s.Expect(s.explain("one")).To(gomega.MatchRegexp(`In the KopfPeering "shops" in the namespace "NAMESPACE", alive@a/1 and other@a/2 have the same priority 0, and pause each other: give them distinct ones by --priority\. If alive@a/1 was killed, that ends at \S+Z \(in \S+\) without your help\.\n`))

	s.patch(object, `{"status":{"other@a/2":null,"by-hand":{"priority":7},"strong@a/4":{"priority":5}}}`)
	s.Expect(s.peers()).To(gomega.ContainSubstring("- by-hand (priority 7, a freeze) pauses alive@a/1, strong@a/4 until it is removed: it does not expire\n"))
	s.Expect(s.explain("one")).To(gomega.ContainSubstring("by-hand in the KopfPeering \"shops\" in the namespace \"NAMESPACE\" has the priority 7, and pauses operators of the priority 0 until it is removed: it does not expire. To end that: kopf resume --id by-hand --peering shops -n NAMESPACE\n"))

	s.patch(object, `{"status":{"by-hand":null}}`)
	_, err = peering.Freeze(t.Context(), cluster.Config(), peering.Target{Name: "shops", Namespace: s.namespace}, peering.FreezeOptions{Identity: "me@here", Priority: 100, Lifetime: time.Hour, Message: "a migration"})
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(s.peers()).To(gomega.And(
		gomega.MatchRegexp(`- me@here \(priority 100, a freeze: a migration\) pauses alive@a/1, strong@a/4 until \S+Z, or until kopf resume ends it\n`),
		gomega.ContainSubstring("- strong@a/4 (priority 5) is paused by me@here, because of a higher priority\n")))
	s.Expect(s.explain("one")).To(gomega.MatchRegexp(`Nothing happens now, because\n  - me@here in the KopfPeering "shops" in the namespace "NAMESPACE" has the priority 100, and pauses operators of the priority 0 until \S+Z, or until kopf resume ends it\. Its message: "a migration"\. To end that: kopf resume --id me@here --peering shops -n NAMESPACE\n`))
}

func TestArgumentsAreCompleted(t *testing.T) {
	s := newScene(t)
	s.OnCreate(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("createFn"))
	s.OnUpdate(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("resize"), kopf.Field("spec.size"))
	s.OnEvent(examples, func(context.Context, *kopf.WatchEvent) error { return nil }, kopf.ID("watch"))
	s.OnValidate(kopf.Resource("v1", "secrets"), func(context.Context, *kopf.Admission) error { return nil }, kopf.ID("check"))
	s.create("one")
	s.create("other")
	ofProgram := s.connect().Completer()
	ofAny, err := inspect.NewCompleter(t.Context(), cluster.Config())
	s.Expect(err).NotTo(gomega.HaveOccurred())
	tests := map[string]struct {
		of           *inspect.Completer
		before       []string
		word         string
		needsHandler bool
		want         []string
	}{
		"kinds with handlers":         {ofProgram, nil, "", false, []string{"secrets/", "kopfexamples.kopf.dev/"}},
		"any kinds":                   {ofAny, nil, "kopfex", false, []string{"kopfexamples.kopf.dev/"}},
		"names after a slash":         {ofProgram, nil, "kopfexample/o", false, []string{"kopfexample/one", "kopfexample/other"}},
		"names as words":              {ofAny, []string{"kex"}, "on", false, []string{"one"}},
		"no handlers":                 {ofProgram, []string{"kex/one"}, "", false, nil},
		"handlers":                    {ofProgram, []string{"kex/one"}, "", true, []string{"createFn", "resize/spec.size"}},
		"handlers after words":        {ofProgram, []string{"kex", "one"}, "re", true, []string{"resize/spec.size"}},
		"handlers of unknown program": {ofAny, []string{"kex/one"}, "", true, nil},
		"nothing more":                {ofProgram, []string{"kex/one", "createFn"}, "", true, nil},
	}
	for name, test := range tests {
		got, err := test.of.Complete(t.Context(), s.namespace, test.before, test.word, test.needsHandler)
		s.Expect(err).NotTo(gomega.HaveOccurred(), name)
		s.Expect(got).To(gomega.Equal(test.want), name)
	}
	_, err = ofProgram.Complete(t.Context(), s.namespace, nil, "nonsense/", false)
	s.Expect(err).To(gomega.HaveOccurred())
	_, err = s.connect().Explain(t.Context(), inspect.Target{Kind: "pods", Namespace: s.namespace, Name: "one"})
	s.Expect(err).To(gomega.MatchError("this program declares no handlers for pods; it has handlers for secrets, kopfexamples.kopf.dev"))
}
