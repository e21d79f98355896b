package peering

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/stop"
	"github.com/kopf-go/kopf/pkg/peering"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// journal records in order what the handlers of several operators do.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) record(format string, values ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, values...))
}

func (j *journal) snapshot() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.lines)
}

// handlers returns the handlers of one operator.
func (j *journal) handlers(operator string) *kopf.Registry {
	r := kopf.NewRegistry()
	kex := kopf.Resource("kopf.dev", "v1", "kopfexamples")
	changed := func(_ context.Context, c *kopf.Change) error {
		field, _ := c.Spec().String("field")
		j.record("%s: %s %s", operator, c.Reason(), field)
		return nil
	}
	r.OnCreate(kex, changed, kopf.ID("changed"))
	r.OnUpdate(kex, changed, kopf.ID("changed"))
	r.Daemon(kex, func(_ context.Context, t *kopf.Task) error {
		j.record("%s: daemon begins", operator)
		<-t.Stopped()
		j.record("%s: daemon ends: %s", operator, t.StopReason()&^stop.Signaled)
		return nil
	}, kopf.ID("daemon"))
	r.Timer(kex, func(_ context.Context, t *kopf.Tick) error {
		t.SetResult(operator)
		return nil
	}, kopf.ID("timer"), kopf.Interval(100*time.Millisecond))
	return r
}

// startOperator runs an operator in a namespace, with a priority.
func (j *journal) startOperator(t *testing.T, name, namespace string, priority int) *operators.Operator {
	t.Helper()
	return operators.Start(t, cluster.Config(), namespace, j.handlers(name), func(o *kopf.Options) {
		o.Settings.Peering.Priority = priority
	})
}

func setField(t *testing.T, object *unstructured.Unstructured, value string) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec": {"field": %q}}`, value)
	err := cluster.Client().Patch(t.Context(), object.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(patch)))
	gomega.NewWithT(t).Expect(err).NotTo(gomega.HaveOccurred())
}

func TestDevelopersOperatorSuppressesTheDeployedOneForAWhile(t *testing.T) {
	g := gomega.NewWithT(t)
	g.SetDefaultEventuallyTimeout(20 * time.Second)
	namespace := cluster.Namespace(t)
	meeting := create(t, cluster, api, namespace, "default")
	var j journal
	j.startOperator(t, "deployed", namespace, 0)
	object := testenv.NewObject("KopfExample", namespace, "one", map[string]any{"field": "first"})
	g.Expect(cluster.Client().Create(t.Context(), object)).To(gomega.Succeed())
	g.Eventually(j.snapshot).Should(gomega.ConsistOf("deployed: daemon begins", "deployed: create first"))
	g.Eventually(cluster.Current(object)).Should(testenv.HavePath("status.timer", "deployed"))

	dev := j.startOperator(t, "dev", namespace, 666)
	g.Eventually(j.snapshot).Should(gomega.ContainElements("deployed: daemon ends: paused", "dev: daemon begins"))
	g.Eventually(cluster.Current(object)).Should(testenv.HavePath("status.timer", "dev"))
	g.Eventually(entries(cluster, meeting)).Should(gomega.HaveLen(2))
	setField(t, object, "second")
	g.Eventually(j.snapshot).Should(gomega.ContainElement("dev: update second"))

	dev.Stop()
	g.Eventually(cluster.Current(object)).Should(testenv.HavePath("status.timer", "deployed"))
	setField(t, object, "third")
	g.Eventually(j.snapshot).Should(gomega.ContainElement("deployed: update third"))
	g.Eventually(entries(cluster, meeting)).Should(gomega.HaveLen(1))
	g.Expect(j.snapshot()[2:]).To(gomega.ConsistOf(
		"deployed: daemon ends: paused", "dev: daemon begins", "dev: update second",
		"dev: daemon ends: exiting", "deployed: daemon begins", "deployed: update third"))
}

func TestChangesDuringAFreezeAreHandledAfterwards(t *testing.T) {
	g := gomega.NewWithT(t)
	g.SetDefaultEventuallyTimeout(20 * time.Second)
	target := peering.Target{Name: "default", Namespace: cluster.Namespace(t)}
	create(t, cluster, api, target.Namespace, target.Name)
	var j journal
	j.startOperator(t, "deployed", target.Namespace, 0)
	object := testenv.NewObject("KopfExample", target.Namespace, "one", map[string]any{"field": "first"})
	gone := testenv.NewObject("KopfExample", target.Namespace, "gone", map[string]any{"field": "first"})
	for _, o := range []*unstructured.Unstructured{object, gone} {
		g.Expect(cluster.Client().Create(t.Context(), o)).To(gomega.Succeed())
	}
	g.Eventually(j.snapshot).Should(gomega.HaveLen(4))

	pause := peering.FreezeOptions{Priority: peering.DefaultFreezePriority, Lifetime: time.Hour}
	frozen, err := peering.Freeze(t.Context(), cluster.Config(), target, pause)
	g.Expect(frozen.Paused, err).To(gomega.HaveLen(1))
	g.Eventually(j.snapshot).Should(gomega.HaveLen(6), "both daemons must stop")
	for _, value := range []string{"second", "third"} {
		setField(t, object, value)
	}
	g.Expect(cluster.Client().Delete(t.Context(), gone)).To(gomega.Succeed())
	g.Expect(cluster.Exists(gone)()).To(gomega.BeTrue(), "the finalizer must hold it")

	g.Expect(peering.Resume(t.Context(), cluster.Config(), target, "")).To(gomega.Succeed())
	g.Eventually(cluster.Exists(gone)).Should(gomega.BeFalse())
	g.Eventually(j.snapshot).Should(gomega.ContainElements("deployed: update third"))
	g.Eventually(j.snapshot).Should(gomega.HaveLen(8))
	g.Expect(j.snapshot()[4:]).To(gomega.ConsistOf("deployed: daemon ends: paused", "deployed: daemon ends: paused",
		"deployed: update third", "deployed: daemon begins"))
}

// A running operator joins at once when the definitions of peering are installed, and a freeze
// pauses it. Its lifetime is too long for looking once per lifetime.
func TestAFreezeRightAfterTheInstallationOfPeering(t *testing.T) {
	g := gomega.NewWithT(t)
	g.SetDefaultEventuallyTimeout(20 * time.Second)
	bare := testenv.Start(t, testenv.Options{CRDs: []string{testenv.ExampleCRDs}})
	target := peering.Target{Name: "default", Namespace: bare.Namespace(t)}
	var j journal
	operators.Start(t, bare.Config(), target.Namespace, j.handlers("deployed"), func(o *kopf.Options) { o.Settings.Peering.Lifetime = time.Hour })
	object := testenv.NewObject("KopfExample", target.Namespace, "one", map[string]any{"field": "first"})
	g.Expect(bare.Client().Create(t.Context(), object)).To(gomega.Succeed())
	g.Eventually(j.snapshot).Should(gomega.HaveLen(2))

	_, err := envtest.InstallCRDs(bare.Config(), envtest.CRDInstallOptions{Paths: []string{"../../../config/crd/kopf.dev"}, ErrorIfPathMissing: true})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	meeting := create(t, bare, api, target.Namespace, target.Name)
	_, err = peering.Freeze(t.Context(), bare.Config(), target, peering.FreezeOptions{Priority: peering.DefaultFreezePriority, Lifetime: time.Hour})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Eventually(j.snapshot).Should(gomega.ContainElement("deployed: daemon ends: paused"))
	g.Expect(entries(bare, meeting)()).To(gomega.HaveLen(2))
}

// An operator for one namespace meets an operator for the cluster, which has another scope.
func TestPeeringObjectIsIndependentOfTheScope(t *testing.T) {
	tests := map[string]struct {
		namespaced bool
		configure  func(p *kopf.Settings, namespace string)
	}{
		"the object of the cluster": {false, func(s *kopf.Settings, _ string) { s.Peering.ClusterWide = true }},
		"the object of a namespace": {true, func(s *kopf.Settings, namespace string) { s.Peering.Namespaces = []string{namespace} }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			served, meeting := cluster.Namespace(t), cluster.Namespace(t)
			target := peering.Target{Name: meeting}
			if test.namespaced {
				target.Namespace = meeting
			}
			object := create(t, cluster, api, target.Namespace, target.Name)
			var j journal
			operators.Start(t, cluster.Config(), served, j.handlers("mine"), func(o *kopf.Options) {
				o.Settings.Peering.Name, o.Settings.Peering.Mandatory, o.Settings.Peering.Identity = meeting, true, "mine"
				test.configure(&o.Settings, meeting)
			})
			g.Eventually(entries(cluster, object)).Should(gomega.HaveKey("mine"))
			pause := peering.FreezeOptions{Identity: "freeze", Priority: 1, Lifetime: time.Hour}
			frozen, err := peering.Freeze(t.Context(), cluster.Config(), target, pause)
			g.Expect(frozen.Paused, err).To(gomega.Equal([]string{"mine"}))
		})
	}
}
