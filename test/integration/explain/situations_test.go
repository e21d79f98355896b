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
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/inspect"
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
	s.states("one", "it runs", "create", "fn (create): due")

	called <- kopf.Temporary(errors.New("the disk is missing"), time.Hour)
	s.states("one", "it waits", "create", "fn (create): waiting")

	s.patch(obj, `{"metadata":{"annotations":{"kopf.zalando.org/request-retry":"1 fn"}}}`)
	called <- kopf.Permanent(errors.New("there is no such disk"))
	s.states("one", "it has failed", "noop", "fn (create): done")
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
	s.states("before", "a new object", "create", "shop (ensure): due", "painted (drift): ready")

	taken := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "taken", Namespace: s.namespace}}
	s.Expect(cluster.Client().Create(t.Context(), taken)).To(gomega.Succeed())
	s.start()
	s.create("taken")
	s.states("taken", "another one has the child", "create", "shop (ensure): waiting", "painted (drift): ready", "Deployment.apps default/taken (shop): waiting")

	s.create("one")
	s.states("one", "the children are applied", "noop", "shop (ensure): done", "painted (drift): ready", "ConfigMap default/one (shop): ready", "Deployment.apps default/one (shop): waiting")

	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: s.namespace}}
	s.patch(config, `{"data":{"color":"blue","size":"2"}}`)
	s.states("one", "a change is accepted", "noop", "shop (ensure): done", "painted (drift): ready", "ConfigMap default/one (shop): ready", "accepted data.color", "Deployment.apps default/one (shop): waiting")
	s.patch(config, `{"metadata":{"annotations":{"kopf.zalando.org/keep":"true"},"finalizers":["example.com/slow"]}}`)
	s.states("one", "a child is kept", "noop", "shop (ensure): done", "painted (drift): ready", "ConfigMap default/one (shop): ready", "accepted data.color", "Deployment.apps default/one (shop): waiting")
	s.Expect(cluster.Client().Delete(t.Context(), config)).To(gomega.Succeed())
	s.states("one", "a child is deleted", "noop", "shop (ensure): done", "painted (drift): ready", "ConfigMap default/one (shop): deleting", "accepted data.color", "Deployment.apps default/one (shop): waiting")
	s.patch(config, `{"metadata":{"finalizers":null}}`)

	stranger := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "copy", Namespace: s.namespace, Labels: config.Labels}}
	s.Expect(cluster.Client().Create(t.Context(), stranger)).To(gomega.Succeed())
	s.states("one", "a copy of a child", "noop", "shop (ensure): done", "painted (drift): ready", "ConfigMap default/copy (shop): foreign", "ConfigMap default/one (shop): ready", "Deployment.apps default/one (shop): waiting")

	s.settings.Name = ""
	s.states("one", "no name", "noop", "perhaps held", "shop (ensure): done", "painted (drift): ready")
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
	s.states("o0", "the first object", "noop", "fn (create, update): due")
	plan, err := s.connect().NewPlan(t.Context(), s.namespace)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(plan.Changes()).To(gomega.Equal(4))
	s.Expect(plan.Resources[0].Examples).To(gomega.Equal([]string{s.namespace + "/o0: rollout", s.namespace + "/o1: rollout", s.namespace + "/o2: rollout", s.namespace + "/o3: rollout"}))
	s.Expect([]int{plan.Resources[0].RollingOut, plan.Resources[0].Calls["fn"]}).To(gomega.Equal([]int{4, 4}))
	s.writes("the plan", plan.Text(inspect.Style{}))
	s.states("o2", "a later object", "noop", "fn (create, update): waiting")

	s.start()
	s.states("o1", "the object that has failed", "noop", "fn (create): failed", "fn (update): failed")
	s.states("o2", "a later object of a stopped rollout", "noop", "fn (create, update): waiting")
	plan, err = s.connect().NewPlan(t.Context(), s.namespace)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect([]int{plan.Changes(), plan.Resources[0].Waiting}).To(gomega.Equal([]int{0, 2}))
	s.Expect(plan.Resources[0].Calls).To(gomega.BeEmpty())
	s.Expect(plan.Resources[0].StoppedRollouts).To(gomega.ConsistOf(gomega.And(
		gomega.HaveField("Handler", "fn"), gomega.HaveField("Revision", "2"), gomega.HaveField("Objects", 4), gomega.HaveField("Failed", 1), gomega.HaveField("Waiting", 2))))
	s.writes("the plan of a stopped rollout", plan.Text(inspect.Style{}))
	s.states("o0", "the object that has ended", "noop", "fn (create): done", "fn (update): done")
}

func TestAdmissionHandlersAreExplained(t *testing.T) {
	s := newScene(t)
	s.settings.Admission.Managed = "shops.example.com"
	review := func(context.Context, *kopf.Admission) error { return errors.New("called") }
	s.OnValidate(examples, review, kopf.ID("check"), kopf.Operations("CREATE", "UPDATE"))
	s.OnMutate(examples, review, kopf.ID("complete"), kopf.Labels(map[string]kopf.Matcher{"app": kopf.Equal("db")}))
	s.OnValidate(examples, review, kopf.ID("restrict"), kopf.When(func(a kopf.Arguments) bool { panic("it is called") }))
	s.create("one")
	s.states("one", "", "no cause", "check (validate): onRequest", "complete (mutate): mismatched", "restrict (validate): undecidable")
}

func TestAdmissionOfOtherNamespacesIsExplained(t *testing.T) {
	s := newScene(t)
	s.settings.Scope.Namespaces = []string{"others"}
	s.OnValidate(examples, func(context.Context, *kopf.Admission) error { return nil }, kopf.ID("check"))
	s.create("one")
	s.states("one", "", "no cause", "held", "check (validate): mismatched")
}

func TestTheScopeIsExplained(t *testing.T) {
	s := newScene(t)
	s.settings.Scope.Namespaces = []string{"team-*", "others"}
	s.OnCreate(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("fn"))
	s.create("one")
	s.states("one", "", "create", "held", "fn (create): paused")
	s.settings.Scope.Namespaces = []string{"labels:team in (web,app)"}
	s.states("one", "labels", "create", "held", "fn (create): paused")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	s.Expect(cluster.Client().Patch(t.Context(), namespace, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"web"}}}`)))).To(gomega.Succeed())
	s.states("one", "labels that the namespace has", "create", "fn (create): due")
}

func TestPeersAreExplained(t *testing.T) {
	s := newScene(t)
	s.settings.Peering.Name, s.settings.Scope.Namespaces = "shops", []string{s.namespace}
	s.OnCreate(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("fn"))
	s.create("one")
	s.writes("no peering object", s.peers())
	object := testenv.NewObject("KopfPeering", s.namespace, "shops", nil)
	s.Expect(cluster.Client().Create(t.Context(), object)).To(gomega.Succeed())
	s.writes("no entry", s.peers())

	seen := func(ago time.Duration) string {
		return time.Now().Add(-ago).UTC().Format("2006-01-02T15:04:05.000000-07:00")
	}
	entries := map[string]any{
		"alive@a/1":  map[string]any{"priority": 0, "lifetime": 3600, "lastseen": seen(0)},
		"other@a/2":  map[string]any{"priority": 0, "lifetime": 3600, "lastseen": seen(0)},
		"dead@a/3":   map[string]any{"priority": 100, "lifetime": 60, "lastseen": "2020-01-01T00:00:00.000000+00:00"},
		"strong@a/4": map[string]any{"priority": -1, "lifetime": 3600, "lastseen": seen(0)},
	}
	text, err := json.Marshal(map[string]any{"status": entries})
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.patch(object, string(text))
	s.pausing(map[string][]string{"alive@a/1": {"other@a/2"}, "dead@a/3": nil, "other@a/2": {"alive@a/1"}, "strong@a/4": {"alive@a/1", "other@a/2"}})
	s.writes("entries", s.peers())
	s.states("one", "entries of one priority", "create", "held", "fn (create): paused")

	s.patch(object, `{"status":{"other@a/2":null,"by-hand":{"priority":7},"strong@a/4":{"priority":5}}}`)
	s.pausing(map[string][]string{"alive@a/1": {"by-hand", "strong@a/4"}, "by-hand": nil, "dead@a/3": nil, "strong@a/4": {"by-hand"}})
	s.writes("an entry of a person", s.peers())
	s.states("one", "an entry of a person holds it", "create", "held", "fn (create): paused")

	s.patch(object, `{"status":{"by-hand":null}}`)
	_, err = peering.Freeze(t.Context(), cluster.Config(), peering.Target{Name: "shops", Namespace: s.namespace}, peering.FreezeOptions{Identity: "me@here", Priority: 100, Lifetime: time.Hour, Message: "a migration"})
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.pausing(map[string][]string{"alive@a/1": {"me@here", "strong@a/4"}, "dead@a/3": {"me@here"}, "me@here": nil, "strong@a/4": {"me@here"}})
	s.writes("a freeze", s.peers())
	s.states("one", "a freeze holds it", "create", "held", "fn (create): paused")
}

// pausing expects entries of the peering object, with those that pause them.
func (s *scene) pausing(want map[string][]string) {
	s.t.Helper()
	list, err := s.connect().Peers(s.t.Context(), "", "")
	s.Expect(err).NotTo(gomega.HaveOccurred())
	got := map[string][]string{}
	for _, object := range list.Objects {
		for _, peer := range object.Peers {
			got[peer.Identity] = peer.PausedBy
		}
	}
	s.Expect(got).To(gomega.Equal(want))
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
