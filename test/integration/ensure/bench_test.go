// Package ensure tests on a real API server how the children of objects are made what a handler
// wants: one file per subject.
package ensure

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

func TestMain(m *testing.M) {
	testenv.Main(m, &cluster, testenv.Options{Parallel: 8})
}

const (
	prefix = "kopf.zalando.org/"
	places = convergence.PlacesAnnotation
	label  = convergence.OwnerLabel
	marks  = convergence.MarksAnnotation
	keep   = kopf.KeepAnnotation
	// name is the field manager of the operators.
	name = "shop-operator"
)

var shops = kopf.Resource("kopf.dev", "v1", "kopfexamples")

// bench is the environment of a test: handlers to declare, a namespace for its objects, and the
// requests, calls, and log lines of its operators.
type bench struct {
	*gomega.WithT
	*kopf.Registry
	t         *testing.T
	namespace string
	config    *rest.Config
	requests  *testenv.CountingTransport
	logs      *operators.Journal
	calls     atomic.Int64 // of the handlers
}

func newBench(t *testing.T) *bench {
	b := &bench{
		WithT: gomega.NewWithT(t), Registry: kopf.NewRegistry(), t: t,
		namespace: cluster.Namespace(t), config: cluster.Config(), logs: &operators.Journal{},
	}
	b.requests = testenv.Count(b.config)
	return b
}

// start runs an operator with the handlers declared so far.
func (b *bench) start(adjust ...func(*kopf.Options)) *operators.Operator {
	b.t.Helper()
	usual := func(o *kopf.Options) {
		o.Logger = b.logs.Logger()
		o.Settings.Name = name
	}
	return operators.Start(b.t, b.config, b.namespace, b.Registry, append([]func(*kopf.Options){usual}, adjust...)...)
}

// restart replaces an operator by another one with other handlers.
func (b *bench) restart(former *operators.Operator, declare func(*kopf.Registry)) *operators.Operator {
	b.t.Helper()
	former.Stop()
	b.Registry = kopf.NewRegistry()
	declare(b.Registry)
	return b.start()
}

// counted counts the calls of a function.
func (b *bench) counted(fn func(context.Context, *kopf.Change) ([]client.Object, error)) func(context.Context, *kopf.Change) ([]client.Object, error) {
	return func(ctx context.Context, c *kopf.Change) ([]client.Object, error) {
		b.calls.Add(1)
		return fn(ctx, c)
	}
}

// shop creates a parent.
func (b *bench) shop(name string, spec map[string]any) *unstructured.Unstructured {
	b.t.Helper()
	return b.submit(testenv.NewObject("KopfExample", b.namespace, name, spec))
}

func (b *bench) submit(obj *unstructured.Unstructured) *unstructured.Unstructured {
	b.t.Helper()
	b.Expect(cluster.Client().Create(b.t.Context(), obj, client.FieldOwner("kubectl"))).To(gomega.Succeed())
	return obj
}

// patch changes an object as another client does.
func (b *bench) patch(obj *unstructured.Unstructured, merge string) {
	b.t.Helper()
	b.Expect(cluster.Client().Patch(b.t.Context(), obj.DeepCopy(), client.RawPatch(apitypes.MergePatchType, []byte(merge)), client.FieldOwner("kubectl"))).To(gomega.Succeed())
}

func (b *bench) remove(obj *unstructured.Unstructured) {
	b.t.Helper()
	b.Expect(cluster.Client().Delete(b.t.Context(), obj.DeepCopy())).To(gomega.Succeed())
}

// current returns the current object.
func (b *bench) current(obj *unstructured.Unstructured) *unstructured.Unstructured {
	b.t.Helper()
	current, err := cluster.Current(obj)()
	b.Expect(err).NotTo(gomega.HaveOccurred())
	return current
}

// expectChild waits until a child has the properties.
func (b *bench) expectChild(child *unstructured.Unstructured, properties ...gomega.OmegaMatcher) *unstructured.Unstructured {
	b.t.Helper()
	b.Eventually(cluster.Current(child)).Should(gomega.And(properties...), b.story)
	return b.current(child)
}

func (b *bench) expectGone(child *unstructured.Unstructured) {
	b.t.Helper()
	b.Eventually(cluster.Exists(child)).Should(gomega.BeFalse(), b.story)
}

// story is what the operators have done, for failures.
func (b *bench) story() string { return b.logs.String() + "\n" + b.requests.String() }

// expectRest waits until the operators have nothing left to do.
func (b *bench) expectRest() {
	b.t.Helper()
	b.Eventually(cluster.AtRest(b.requests)).Should(gomega.BeTrue(), b.story)
}

// expectHandled waits until the parent has no open records, and the operators rest.
func (b *bench) expectHandled(parent *unstructured.Unstructured) *unstructured.Unstructured {
	b.t.Helper()
	b.Eventually(cluster.Current(parent)).Should(gomega.And(
		testenv.HavePath("metadata.annotations", gomega.HaveKey(prefix+"last-handled-configuration")),
		testenv.HavePath("metadata.annotations", gomega.Not(gomega.HaveKey(prefix+"children"))),
	), b.story)
	b.expectRest()
	return b.current(parent)
}

// logged returns the lines of the log that contain all of the texts, for Eventually.
func (b *bench) logged(texts ...string) func() []string {
	return func() []string { return b.logs.With(texts...) }
}

// the kinds of the children of a shop.
var (
	configMaps  = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	secrets     = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	services    = schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	claims      = schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}
	deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	budgets     = schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}
	shopKind    = schema.GroupVersionKind{Group: "kopf.dev", Version: "v1", Kind: "KopfExample"}
	namespaces  = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
)

// controlledBy returns the reference to a controller.
func controlledBy(owner *unstructured.Unstructured) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())}
}

// object returns an object of a kind.
func object(kind schema.GroupVersionKind, namespace, name string, content map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	for key, value := range content {
		u.Object[key] = value
	}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// family returns the five children of a shop, of which the server completes and normalizes
// several fields.
func family(namespace, shop string, replicas int64) []client.Object {
	app := map[string]any{"app": shop}
	return []client.Object{
		object(deployments, namespace, shop, map[string]any{"spec": map[string]any{
			"replicas": replicas, "selector": map[string]any{"matchLabels": app},
			"template": map[string]any{
				"metadata": map[string]any{"labels": app},
				"spec": map[string]any{"containers": []any{map[string]any{
					"name": "web", "image": "shop:1", "ports": []any{map[string]any{"containerPort": int64(80)}},
					"resources": map[string]any{"limits": map[string]any{"cpu": "1000m", "memory": "1024Mi"}},
				}}},
			},
		}}),
		object(services, namespace, shop, map[string]any{"spec": map[string]any{
			"selector": app, "ports": []any{map[string]any{"port": int64(80)}},
		}}),
		object(configMaps, namespace, shop, map[string]any{"data": map[string]any{"replicas": fmt.Sprint(replicas), "theme": "dark"}}),
		object(secrets, namespace, shop, map[string]any{"stringData": map[string]any{"password": "x"}}),
		object(claims, namespace, shop, map[string]any{"spec": map[string]any{
			"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1024Mi"}},
		}}),
	}
}

// children returns the family of a shop.
func children(_ context.Context, c *kopf.Change) ([]client.Object, error) {
	replicas, _ := c.Spec().Int64("replicas")
	return family(c.Namespace(), c.Name(), replicas), nil
}

// of returns the child of a kind in the family of a shop.
func (b *bench) of(kind schema.GroupVersionKind, shop string) *unstructured.Unstructured {
	return object(kind, b.namespace, shop, nil)
}

// beOurs matches a child that the operator has applied.
func beOurs() gomega.OmegaMatcher {
	return gomega.And(
		testenv.HavePath("metadata.labels", gomega.HaveKey(label)),
		testenv.HavePath("metadata.annotations", gomega.HaveKey(marks)),
	)
}
