package explain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/rollout"
	"github.com/kopf-go/kopf/pkg/peering"
	"github.com/kopf-go/kopf/test/testenv"
)

// pages are the situations of docs/nothing-happens.md, by the marks before their listings. Each
// returns what asks about the object "one".
var pages = map[string]func(s *scene) (ask func() string){
	"paused":    paused,
	"scope":     outsideScope,
	"selectors": outOfSight,
	"kind":      withoutHandlers,
	"label":     anotherLabel,
	"function":  rejectedByFunction,
	"waiting":   waitingForARetry,
	"later":     changedMeanwhile,
	"suspended": suspended,
	"handled":   handledAlready,
	"rollout":   stoppedRollout,
	"stalled":   stalledByFailure,
	"drift":     acceptedDrift,
	"outgrown":  outgrown,
	"taken":     takenChild,
	"refused":   refusedWrite,
	"deletion":  heldByOthers,
	"version":   anotherVersion,
	"refusing":  withoutFields,
	"expired":   expiredLease,
	"leader":    standby,
	"unknown":   unknown,
}

// marked matches a listing of the page.
var marked = regexp.MustCompile("(?s)<!-- situation: (\\w+) -->\n\n```console\n\\$ [^\n]*\n(.*?)```\n")

// TestThePageShowsRealAnswers compares the listings with the answers. A line of dots stands for
// lines that are left out.
func TestThePageShowsRealAnswers(t *testing.T) {
	text, err := os.ReadFile("../../../docs/nothing-happens.md")
	if err != nil {
		t.Fatal(err)
	}
	listings := map[string]string{}
	for _, found := range marked.FindAllStringSubmatch(string(text), -1) {
		listings[found[1]] = found[2]
	}
	if len(listings) != len(pages) {
		t.Errorf("the page has %d listings of %d situations", len(listings), len(pages))
	}
	for name, situation := range pages {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			ask, listing := situation(s), neutral(s, listings[name])
			s.Expect(listing).NotTo(gomega.BeEmpty())
			s.Eventually(func() string {
				got := neutral(s, ask())
				missing := missingLine(listing, got)
				if missing == "" {
					return ""
				}
				return fmt.Sprintf("the page has the line %q; got\n%s", missing, got)
			}).Should(gomega.BeEmpty())
		})
	}
}

// changing are the parts of answers that differ from run to run. Times of 2020 are fixed ones of tests.
var changing = map[*regexp.Regexp]string{
	regexp.MustCompile(`20(2[1-9]|[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\dZ`): "TIME",
	regexp.MustCompile(`\(in [0-9hms]+\)`):                             "(in SOME TIME)",
	regexp.MustCompile(`\([0-9hms]+ ago\)`):                            "(SOME TIME ago)",
	regexp.MustCompile(`[^\s(]+\.go:\d+`):                              "PLACE",
	regexp.MustCompile(`uid [0-9a-f-]{36}`):                            "uid UID",
	regexp.MustCompile(`was active [0-9hms]+ ago`):                     "was active SOME TIME ago",
	regexp.MustCompile(`goroutine \d+ \[running\]: .*`):                "STACK",
	regexp.MustCompile(`--kubeconfig=\S+`):                             "--kubeconfig=FILE",
	regexp.MustCompile(`[^\s@]+@[^\s/]+/\d{14}/\w+`):                   "PEER",
	regexp.MustCompile(`operator at https://[^\s]+`):                   "operator at ENDPOINT",
	regexp.MustCompile(`\S+_[0-9a-f-]{36}`):                            "REPLICA",
	regexp.MustCompile(` is forbidden: User "[^"]*" cannot \w+ resource "[^"]*" in API group "[^"]*" (in the namespace "[^"]*"|at the cluster scope)`): " is forbidden",
	regexp.MustCompile(`for another [0-9hms]+`): "for another SOME TIME",
}

// neutral replaces what differs from run to run.
func neutral(s *scene, text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, s.namespace, "default"), "NAMESPACE", "default")
	for pattern, instead := range changing {
		text = pattern.ReplaceAllString(text, instead)
	}
	return text
}

// missingLine returns the first line of a listing that is not where it should be.
func missingLine(listing, got string) string {
	lines, skips := strings.Split(got, "\n"), false
	for want := range strings.Lines(strings.TrimSpace(listing)) {
		want = strings.TrimRight(want, "\n")
		if strings.TrimSpace(want) == "…" {
			skips = true
			continue
		}
		i := slices.Index(lines, want)
		if i < 0 || i > 0 && !skips {
			return want
		}
		lines, skips = lines[i+1:], false
	}
	return ""
}

func create(context.Context, *kopf.Change) error { return nil }

func paused(s *scene) func() string {
	s.settings.Scope.Namespaces = []string{s.namespace}
	s.OnCreate(examples, create, kopf.ID("createFn"))
	s.create("one")
	object := testenv.NewObject("KopfPeering", s.namespace, "default", nil)
	s.Expect(cluster.Client().Create(s.t.Context(), object)).To(gomega.Succeed())
	s.patch(object, `{"status":{`+entry("my-operator-7d9c", 0)+`}}`)
	_, err := peering.Freeze(s.t.Context(), cluster.Config(), peering.Target{Name: "default", Namespace: s.namespace}, peering.FreezeOptions{Identity: "jane@laptop", Priority: 100, Lifetime: time.Hour})
	s.Expect(err).NotTo(gomega.HaveOccurred())
	return s.explain
}

func outsideScope(s *scene) func() string {
	s.settings.Scope.Namespaces = []string{"team-*"}
	s.OnCreate(examples, create, kopf.ID("createFn"))
	s.create("one")
	plan, err := s.connect().NewPlan(s.t.Context(), s.namespace, "kopfexamples")
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(plan.Resources).To(gomega.ConsistOf(gomega.And(gomega.HaveField("Objects", 1), gomega.HaveField("Outside", 1), gomega.HaveField("Creations", 0))))
	return s.explain
}

// outOfSight is about an object that has lost the label while no operator was running.
func outOfSight(s *scene) func() string {
	s.settings.Watching.LabelSelectors = map[string]string{"kopfexamples": "app=web"}
	s.OnCreate(examples, create, kopf.ID("createFn"))
	s.OnDelete(examples, create, kopf.ID("deleteFn"))
	s.create("other")
	obj := s.create("one")
	s.patch(obj, `{"metadata":{"labels":{"app":"db"},"finalizers":["kopf.zalando.org/KopfFinalizerMarker"]}}`)
	plan, err := s.connect().NewPlan(s.t.Context(), s.namespace, "kopfexamples")
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(plan.Resources).To(gomega.ConsistOf(gomega.HaveField("Objects", 0)))
	s.Expect(plan.Notes).To(gomega.ContainElement("The operator watches only the objects of kopfexamples.kopf.dev that match settings.Watching.LabelSelectors (app=web). Others are not counted."))
	return s.explain
}

func withoutHandlers(s *scene) func() string {
	s.OnCreate(examples, create, kopf.ID("createFn"))
	_, err := s.connect().Explain(s.t.Context(), inspect.Target{Kind: "deployment", Namespace: s.namespace, Name: "one"})
	s.Expect(err).To(gomega.HaveOccurred())
	return func() string { return "my-operator: " + err.Error() }
}

func anotherLabel(s *scene) func() string {
	s.OnCreate(examples, create, kopf.ID("createFn"), kopf.Labels(map[string]kopf.Matcher{"app": kopf.Equal("db")}))
	obj := s.create("one")
	s.patch(obj, `{"metadata":{"labels":{"app":"web"}}}`)
	return s.explain
}

func rejectedByFunction(s *scene) func() string {
	isProduction := func(a kopf.Arguments) bool { return a.Labels()["stage"] == "production" }
	s.OnCreate(examples, create, kopf.ID("createFn"), kopf.When(isProduction))
	s.create("one")
	return s.explain
}

func waitingForARetry(s *scene) func() string {
	s.OnCreate(examples, func(context.Context, *kopf.Change) error {
		return kopf.Temporary(errors.New("the disk is not ready"), time.Hour)
	}, kopf.ID("createFn"), kopf.Retries(5))
	s.start()
	s.create("one")
	return s.explain
}

// changedMeanwhile is an object that has changed while one of its handlers waits.
func changedMeanwhile(s *scene) func() string {
	s.OnCreate(examples, create, kopf.ID("theme"))
	s.OnUpdate(examples, create, kopf.ID("theme"))
	s.OnCreate(examples, retried, kopf.ID("users"))
	s.start()
	obj := s.create("one")
	s.shows("one", "theme (create, update): succeeded", "users (create): waiting")
	s.patch(obj, `{"spec":{"color":"red"}}`)
	return s.explain
}

func suspended(s *scene) func() string {
	s.OnCreate(examples, create, kopf.ID("createFn"))
	obj := s.create("one")
	s.patch(obj, fmt.Sprintf(`{"metadata":{"annotations":{"kopf.zalando.org/request-suspend":%q}}}`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339)))
	return s.explain
}

func handledAlready(s *scene) func() string {
	s.OnCreate(examples, func(context.Context, *kopf.Change) error { return kopf.Permanent(errors.New("no such size")) }, kopf.ID("createFn"))
	s.OnUpdate(examples, create, kopf.ID("resize"), kopf.Field("spec.size"))
	s.start()
	s.isHandled(s.create("one"))
	return s.explain
}

// refusedWrite is an operator whose writes a webhook refuses.
func refusedWrite(s *scene) func() string {
	s.OnCreate(examples, create, kopf.ID("createFn"))
	s.refuseWrites()
	s.start()
	s.create("one")
	return s.explain
}

// heldByOthers is an object with the finalizer of another controller, whose deletion handlers have
// ended.
func heldByOthers(s *scene) func() string {
	s.OnDelete(examples, create, kopf.ID("deleteFn"))
	s.start()
	obj := s.create("one")
	s.Eventually(cluster.Current(obj)).Should(testenv.HavePath("metadata.finalizers", gomega.HaveLen(1)))
	s.patch(obj, `{"metadata":{"finalizers":["kopf.zalando.org/KopfFinalizerMarker","example.com/backup"]}}`)
	s.t.Cleanup(func() {
		s.Expect(cluster.Client().Patch(context.Background(), obj, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))).To(gomega.Succeed())
	})
	s.Expect(cluster.Client().Delete(s.t.Context(), obj)).To(gomega.Succeed())
	return s.explain
}

func anotherVersion(s *scene) func() string {
	s.OnCreate(kopf.Resource("kopf.dev", "v2", "kopfexamples"), create, kopf.ID("createFn"))
	_, err := s.connect().Explain(s.t.Context(), inspect.Target{Kind: "kopfexample", Namespace: s.namespace, Name: "one"})
	s.Expect(err).To(gomega.HaveOccurred())
	return func() string { return "my-operator: " + err.Error() }
}

func stalledByFailure(s *scene) func() string {
	s.Conditions(examples)
	return handledAlready(s)
}

func outgrown(s *scene) func() string {
	s.settings.Name = "shops.example.com"
	s.Ensure(examples, shop, kopf.ID("shop"), kopf.Labels(matching(kopf.Equal("db"))))
	s.start()
	obj := s.create("one")
	s.patch(obj.DeepCopy(), `{"metadata":{"labels":{"app":"db"}}}`)
	s.shows("one", "ConfigMap default/one (shop): ready")
	s.patch(obj.DeepCopy(), labeledWeb)
	return s.explain
}

func takenChild(s *scene) func() string {
	s.settings.Name = "shops.example.com"
	taken := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: s.namespace, OwnerReferences: s.controlled()}}
	s.Expect(cluster.Client().Create(s.t.Context(), taken)).To(gomega.Succeed())
	s.Ensure(examples, shop, kopf.ID("shop"), kopf.Backoff(time.Hour))
	s.start()
	s.create("one")
	return s.explain
}

// withoutFields is an operator that also has conditions for a resource without the fields.
func withoutFields(s *scene) func() string {
	pruned := kopf.Resource("kopf.dev", "v1", "kopfpruneds")
	s.OnCreate(examples, create, kopf.ID("createFn"))
	s.OnCreate(pruned, create, kopf.ID("createFn"))
	s.Conditions(pruned)
	s.create("one")
	return s.explain
}

// expiredLease is an operator that has died.
func expiredLease(s *scene) func() string {
	s.settings.Replicas.LeaderElection, s.settings.Replicas.LeaseName, s.settings.Replicas.LeaseNamespace = true, "my-operator", s.namespace
	s.OnCreate(examples, create, kopf.ID("createFn"))
	s.create("one")
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "my-operator", Namespace: s.namespace}}
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: new("my-operator-7d9c_1"), LeaseDurationSeconds: new(int32(15)), RenewTime: &metav1.MicroTime{Time: time.Now().Add(-time.Hour)}}
	s.Expect(cluster.Client().Create(s.t.Context(), lease)).To(gomega.Succeed())
	return s.explain
}

// standby is an operator that does not get its lease.
func standby(s *scene) func() string {
	s.settings.Replicas.LeaseName, s.settings.Replicas.LeaseNamespace = "my-operator", s.namespace
	s.OnCreate(examples, create, kopf.ID("createFn"))
	s.create("one")
	s.states("one", "no lease", "create", "createFn (create): due")
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "my-operator", Namespace: s.namespace}}
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: new(""), LeaseDurationSeconds: new(int32(1))}
	s.Expect(cluster.Client().Create(s.t.Context(), lease)).To(gomega.Succeed())
	s.states("one", "no holder", "create", "perhaps held", "createFn (create): due")
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: new("my-operator-7d9c_1"), LeaseDurationSeconds: new(int32(15)), RenewTime: &metav1.MicroTime{Time: time.Now().Add(-time.Hour)}}
	s.Expect(cluster.Client().Update(s.t.Context(), lease)).To(gomega.Succeed())
	s.states("one", "an expired lease", "create", "perhaps held", "createFn (create): due")
	lease.Spec.RenewTime, lease.Spec.LeaseDurationSeconds = &metav1.MicroTime{Time: time.Now()}, new(int32(600))
	s.Expect(cluster.Client().Update(s.t.Context(), lease)).To(gomega.Succeed())
	return s.explain
}

func stoppedRollout(s *scene) func() string {
	render := func(_ context.Context, c *kopf.Change) error {
		if c.Reason() == kopf.ReasonUpdate {
			return kopf.Permanent(errors.New("spec.page must be set"))
		}
		return nil
	}
	s.OnCreate(examples, render, kopf.ID("render"), kopf.Revision("1"))
	former := s.start()
	for _, name := range []string{"one", "a", "b"} {
		s.isHandled(s.create(name))
	}
	former.Stop()
	s.Registry = kopf.NewRegistry()
	s.settings.Scope.Namespaces = []string{s.namespace}
	s.OnCreate(examples, render, kopf.ID("render"), kopf.Revision("2"), kopf.Rollout(rollout.First(1)))
	s.start()
	return s.explain
}

func acceptedDrift(s *scene) func() string {
	s.settings.Name = "shops.example.com"
	s.Ensure(examples, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.Name(), Namespace: c.Namespace()}, Data: map[string]string{"color": "red"}}}, nil
	}, kopf.ID("shop"))
	s.OnDrift(examples, func(context.Context, *kopf.Drift) (kopf.Resolution, error) { return kopf.AcceptDrift(), nil }, kopf.ID("painted"))
	s.start()
	s.create("one")
	s.shows("one", "ConfigMap default/one (shop): ready")
	s.patch(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: s.namespace}}, `{"data":{"color":"blue"}}`)
	return s.explain
}

func unknown(s *scene) func() string {
	prices := kopf.NewIndex(s.Registry, examples, func(context.Context, *kopf.Indexed) (map[string]string, error) { return nil, nil }, kopf.ID("prices"))
	s.OnCreate(examples, create, kopf.ID("createFn"), kopf.When(func(a kopf.Arguments) bool { return prices.Has(a.Name()) }))
	s.create("one")
	return s.explain
}
