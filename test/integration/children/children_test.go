package children

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

var (
	examples   = kopf.Resource("kopfexamples")
	configMaps = kopf.Resource("v1", "configmaps")
)

// told records calls for children, in lines such as "one update a".
type told struct {
	operators.Calls
	failing atomic.Bool
	starts  atomic.Int64
}

func (w *told) handle(_ context.Context, c *kopf.ChildChange) error {
	if strings.HasPrefix(c.Name(), "first-") {
		return nil // see start
	}
	if c.Initial() {
		var names []string
		for _, child := range c.Children() {
			names = append(names, child.Name())
		}
		w.Note("%s %s %s", c.Name(), c.Reason(), strings.Join(names, " "))
	} else {
		value := "-"
		if _, after, found := strings.Cut(fmt.Sprint(c.Diff()), "data.value: "); found && c.Reason() == kopf.ReasonUpdate {
			value = after
		}
		w.Note("%s %s %s %s", c.Name(), c.Reason(), c.Child().Name(), value)
	}
	if w.failing.Load() {
		return kopf.Temporary(errors.New("not now"), time.Second)
	}
	return nil
}

// start runs an operator in some namespaces, and waits until it works: objects that are created
// before are none that it has seen from their beginning.
func (w *told) start(t *testing.T, config *rest.Config, registry *kopf.Registry, namespaces ...string) *operators.Operator {
	t.Helper()
	g, works := gomega.NewWithT(t), make(chan struct{}, 1)
	registry.OnEvent(examples, func(_ context.Context, e *kopf.WatchEvent) error {
		if strings.HasPrefix(e.Name(), "first-") && e.Type() == "ADDED" {
			works <- struct{}{}
		}
		return nil
	}, kopf.ID("works"))
	operator := operators.Start(t, config, "", registry, func(o *kopf.Options) {
		o.Settings.Name, o.Settings.Scope.Namespaces = "test", namespaces
	})
	first := example(namespaces[0], fmt.Sprint("first-", w.starts.Add(1)))
	create(t, g, first)
	g.Eventually(works).Should(gomega.Receive())
	return operator
}

// ofConfigMaps declares the handler of config maps that belong to examples.
func (w *told) ofConfigMaps(options ...kopf.ChildOption) *kopf.Registry {
	registry := kopf.NewRegistry()
	registry.OnChild(examples, configMaps, w.handle, append(options, kopf.ID("tell"))...)
	return registry
}

func create(t *testing.T, g *gomega.WithT, objects ...client.Object) {
	t.Helper()
	for _, one := range objects {
		g.Expect(cluster.Client().Create(t.Context(), one)).To(gomega.Succeed())
	}
}

func example(in, name string) *unstructured.Unstructured {
	return testenv.NewObject("KopfExample", in, name, map[string]any{"size": int64(1)})
}

func ownerOf(parent *unstructured.Unstructured) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: parent.GetAPIVersion(), Kind: parent.GetKind(), Name: parent.GetName(), UID: parent.GetUID()}}
}

func childOf(parent *unstructured.Unstructured, in, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: in, OwnerReferences: ownerOf(parent)}, Data: map[string]string{"value": "0"},
	}
}

func setValue(t *testing.T, g *gomega.WithT, child *corev1.ConfigMap, value string) {
	t.Helper()
	child.Data["value"] = value
	g.Expect(cluster.Client().Update(t.Context(), child)).To(gomega.Succeed())
}

func TestChildrenAreCreatedChangedMovedAndDeleted(t *testing.T) {
	t.Parallel()
	g, w, in, config := gomega.NewWithT(t), &told{}, cluster.Namespace(t), cluster.Config()
	requests := testenv.Count(config)
	w.start(t, config, w.ofConfigMaps(), in)
	one, two := example(in, "one"), example(in, "two")
	create(t, g, one, two)
	a := childOf(one, in, "a")
	create(t, g, a, childOf(two, in, "b"))
	want := []string{"one create a -", "two create b -"}
	g.Eventually(w.All).Should(gomega.ConsistOf(want))
	setValue(t, g, a, "1")
	want = append(want, `one update a "0" -> "1"`)
	g.Eventually(w.All).Should(gomega.ConsistOf(want))
	a.OwnerReferences = ownerOf(two)
	g.Expect(cluster.Client().Update(t.Context(), a)).To(gomega.Succeed())
	want = append(want, "one delete a -", "two create a -")
	g.Eventually(w.All).Should(gomega.ConsistOf(want))
	g.Expect(cluster.Client().Delete(t.Context(), a)).To(gomega.Succeed())
	want = append(want, "two delete a -")
	g.Eventually(w.All).Should(gomega.ConsistOf(want))
	g.Expect(requests.Snapshot().Writes("kopfexamples")).To(gomega.BeZero(), "%s", requests)
	g.Expect(requests.Snapshot().Writes("configmaps")).To(gomega.BeZero(), "%s", requests)

	// Nothing is requested at rest, except what the cluster serves: the watches are open already.
	requests.Reset()
	g.Consistently(func() []testenv.Request {
		return slices.DeleteFunc(requests.Requests(), func(r testenv.Request) bool { return r.Resource == "" })
	}, time.Second).Should(gomega.BeEmpty())
}

func TestARestartTellsAllChildren(t *testing.T) {
	t.Parallel()
	g, w, in, config := gomega.NewWithT(t), &told{}, cluster.Namespace(t), cluster.Config()
	one, two := example(in, "one"), example(in, "two")
	create(t, g, one, two)
	a, b := childOf(one, in, "a"), childOf(one, in, "b")
	create(t, g, a, b)
	requests := testenv.Count(config)
	operator := w.start(t, config, w.ofConfigMaps(), in)
	want := []string{"one resume a b", "two resume "}
	g.Eventually(w.All).Should(gomega.ConsistOf(want))
	operator.Stop()

	// What has happened meanwhile is not told, but visible.
	g.Expect(cluster.Client().Delete(t.Context(), a)).To(gomega.Succeed())
	setValue(t, g, b, "1")
	w.start(t, config, w.ofConfigMaps(), in)
	g.Eventually(w.All).Should(gomega.ConsistOf(append(want, "one resume b", "two resume ")))
	setValue(t, g, b, "2")
	g.Eventually(w.All).Should(gomega.ContainElement(`one update b "1" -> "2"`))
	g.Expect(requests.Snapshot().Writes("kopfexamples")).To(gomega.BeZero(), "%s", requests)
}

func TestAFailingCallSurvivesARestart(t *testing.T) {
	t.Parallel()
	g, w, in, config := gomega.NewWithT(t), &told{}, cluster.Namespace(t), cluster.Config()
	operator := w.start(t, config, w.ofConfigMaps(), in)
	one := example(in, "one")
	create(t, g, one)
	w.failing.Store(true)
	create(t, g, childOf(one, in, "a"))
	record := testenv.HaveAnnotation("kopf.zalando.org/tell", gomega.And(gomega.Not(gomega.BeNil()), gomega.ContainSubstring(`"purpose":"child"`)))
	g.Eventually(cluster.Current(one)).Should(record)
	operator.Stop()
	before := len(w.All())
	w.start(t, config, w.ofConfigMaps(), in)
	g.Eventually(func() []string { return w.All()[before:] }).Should(gomega.ContainElement("one resume a"))
	g.Expect(cluster.Current(one)()).To(record)
	w.failing.Store(false)
	g.Eventually(cluster.Current(one)).Should(testenv.HaveAnnotation("kopf.zalando.org/tell", nil))
}

func TestChildrenByLabelCanBeAnywhere(t *testing.T) {
	t.Parallel()
	const label = "example.com/parent"
	g, w, in, other := gomega.NewWithT(t), &told{}, cluster.Namespace(t), cluster.Namespace(t)
	registry := w.ofConfigMaps(kopf.ChildLabel(label))
	registry.OnChild(examples, kopf.Resource("clusterroles"), w.handle, kopf.ID("tellRoles"), kopf.ChildLabel(label))
	w.start(t, cluster.Config(), registry, in, other)
	one := example(in, "one")
	create(t, g, one)
	labels := map[string]string{label: string(one.GetUID())}
	far := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "far", Namespace: other, Labels: labels}, Data: map[string]string{"value": "0"}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: in + "-role", Labels: labels}}
	create(t, g, far, role)
	t.Cleanup(func() { _ = cluster.Client().Delete(context.Background(), role) })
	g.Eventually(w.All).Should(gomega.ConsistOf("one create far -", "one create "+in+"-role -"))
	delete(far.Labels, label)
	g.Expect(cluster.Client().Update(t.Context(), far)).To(gomega.Succeed())
	g.Eventually(w.All).Should(gomega.ContainElement("one delete far -"))
}

func TestAParentCanBeOutsideOfNamespaces(t *testing.T) {
	t.Parallel()
	g, w, in := gomega.NewWithT(t), &told{}, cluster.Namespace(t)
	registry := kopf.NewRegistry()
	registry.OnChild(kopf.Resource("kopfclusters"), configMaps, w.handle, kopf.ID("tell"), kopf.When(func(a kopf.Arguments) bool { return a.Name() == in }))
	w.start(t, cluster.Config(), registry, in)
	parent := testenv.NewObject("KopfCluster", "", in, map[string]any{})
	create(t, g, parent)
	t.Cleanup(func() { _ = cluster.Client().Delete(context.Background(), parent) })
	create(t, g, childOf(parent, in, "a"))
	g.Eventually(w.All).Should(gomega.ConsistOf(in + " create a -"))
}

// An owner reference names the uid: the children of a former object of the name are not those of its
// successor.
func TestARecreatedParentIsNotToldAboutFormerChildren(t *testing.T) {
	t.Parallel()
	g, w, in := gomega.NewWithT(t), &told{}, cluster.Namespace(t)
	w.start(t, cluster.Config(), w.ofConfigMaps(), in)
	former := example(in, "one")
	create(t, g, former)
	orphan := childOf(former, in, "orphan")
	create(t, g, orphan)
	g.Eventually(w.All).Should(gomega.ConsistOf("one create orphan -"))
	g.Expect(cluster.Client().Delete(t.Context(), former)).To(gomega.Succeed())
	successor := example(in, "one")
	create(t, g, successor)
	setValue(t, g, orphan, "1")
	create(t, g, childOf(successor, in, "a")) // its event comes after that of the orphan
	g.Eventually(w.All).Should(gomega.ContainElement("one create a -"))
	g.Expect(w.All()).To(gomega.ConsistOf("one create orphan -", "one create a -"))
}

// A burst of changes leads to few calls, and the last one sees the last state.
func TestABurstIsMerged(t *testing.T) {
	t.Parallel()
	const changes = 200
	g, in, config := gomega.NewWithT(t), cluster.Namespace(t), cluster.Config()
	var calls atomic.Int64
	var last atomic.Value
	registry := kopf.NewRegistry()
	registry.OnChild(examples, configMaps, func(ctx context.Context, c *kopf.ChildChange) error {
		calls.Add(1)
		value, _ := c.Child().View().View("data").String("value")
		last.Store(value)
		select { // a slow handler
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
		}
		return nil
	}, kopf.ID("slow"))
	(&told{}).start(t, config, registry, in)
	one := example(in, "one")
	create(t, g, one)
	child := childOf(one, in, "a")
	create(t, g, child)
	for i := range changes {
		setValue(t, g, child, fmt.Sprint(i))
	}
	g.Eventually(last.Load).Should(gomega.Equal(fmt.Sprint(changes - 1)))
	if got := calls.Load(); got > changes/2 {
		t.Errorf("%d calls for %d changes", got, changes)
	}
}

// The time from a change of a child to the call for its parent is reported, not limited.
func TestTheTimeToACallIsMeasured(t *testing.T) {
	const parents, rounds = 20, 10
	g, in, config := gomega.NewWithT(t), cluster.Namespace(t), cluster.Config()
	arrived := make(chan time.Time, 1)
	registry := kopf.NewRegistry()
	registry.OnChild(examples, configMaps, func(_ context.Context, c *kopf.ChildChange) error {
		if c.Reason() == kopf.ReasonUpdate {
			arrived <- time.Now()
		}
		return nil
	}, kopf.ID("arrive"))
	(&told{}).start(t, config, registry, in)
	var all []*corev1.ConfigMap
	for i := range parents {
		parent := example(in, fmt.Sprint("parent-", i))
		create(t, g, parent)
		child := childOf(parent, in, fmt.Sprint("child-", i))
		create(t, g, child)
		all = append(all, child)
	}
	var took []time.Duration
	for round := range rounds {
		for _, child := range all {
			setValue(t, g, child, fmt.Sprint("round ", round))
			answered := time.Now() // when the API server has stored it
			took = append(took, (<-arrived).Sub(answered))
		}
	}
	slices.Sort(took)
	t.Logf("from the answer to a change until the call: median %s, p99 %s", took[len(took)/2], took[len(took)*99/100])
}
