package page

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// objects is the number of objects for the browser. With 10,000, the test takes some minutes.
var objects = flag.Int("objects", 400, "the `number` of objects in the test of a page with many")

// newStore declares an operator whose objects come to states by the beginnings of their names.
func newStore() *kopf.Registry {
	registry := kopf.NewRegistry()
	of := func(state string) kopf.Option {
		return kopf.Labels(map[string]kopf.Matcher{"state": kopf.Equal(state)})
	}
	later := func(context.Context, *kopf.Change) error {
		return kopf.Temporary(errors.New("the bank does not answer"), time.Hour)
	}
	registry.OnCreate(examples, later, kopf.ID("retry"), of("retry"))
	registry.OnCreate(examples, later, kopf.ID("later"), of("failed"))
	registry.OnCreate(examples, func(context.Context, *kopf.Change) error { return kopf.Permanent(errors.New("the parcel is lost")) }, kopf.ID("fail"), of("failed"))
	registry.OnDelete(examples, func(context.Context, *kopf.Change) error { return kopf.Permanent(errors.New("it cannot be refunded")) }, kopf.ID("refund"), kopf.HoldOnFailure(), of("held"))
	registry.Ensure(examples, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.Name() + "-config", Namespace: c.Namespace()}, Data: map[string]string{"size": "1"}}}, nil
	}, kopf.ID("config"), of("parent"))
	registry.OnDrift(examples, func(context.Context, *kopf.Drift) (kopf.Resolution, error) { return kopf.AcceptDrift(), nil }, kopf.ID("drift"))
	registry.OnCreate(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("create"))
	registry.OnUpdate(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("update"))
	return registry
}

// stock creates objects, by the beginnings of their names. Those of "bulk" were handled already.
func stock(t *testing.T, namespace string, numbers map[string]int) {
	t.Helper()
	all, ctx := errgroup.WithContext(t.Context())
	all.SetLimit(16)
	for state, number := range numbers {
		for i := range number {
			all.Go(func() error {
				obj := testenv.NewObject("KopfExample", namespace, fmt.Sprintf("%s-%0*d", state, map[bool]int{true: 6, false: 3}[state == "bulk"], i), map[string]any{"items": int64(1)})
				if state == "bulk" {
					obj.SetAnnotations(map[string]string{"kopf.zalando.org/last-handled-configuration": `{"spec":{"items":1}}` + "\n"})
				} else {
					obj.SetLabels(map[string]string{"state": state})
				}
				return cluster.Client().Create(ctx, obj)
			})
		}
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
}

// TestTheBrowserShowsManyObjects looks at a page about many objects in several states with headless Chromium.
func TestTheBrowserShowsManyObjects(t *testing.T) {
	if chromium() == "" {
		t.Log("NOT TESTED: there is no Chromium in the PATH, so the page is not opened")
		return
	}
	special := map[string]int{"retry": 50, "failed": 5, "held": 3, "parent": 20}
	numbers := map[string]int{"bulk": *objects}
	for state, number := range special {
		numbers[state] = number
		numbers["bulk"] -= number
	}
	registry, namespace := newStore(), cluster.Namespace(t)
	stock(t, namespace, numbers)
	operators.Start(t, cluster.Config(), namespace, registry, func(o *kopf.Options) { o.Settings.Name = gallery })
	g := gomega.NewWithT(t)
	for i := range special["held"] {
		obj := testenv.NewObject("KopfExample", namespace, fmt.Sprintf("held-%03d", i), nil)
		g.Eventually(cluster.Current(obj)).Should(testenv.HavePath("metadata.finalizers", gomega.HaveLen(1)))
		g.Expect(cluster.Client().Delete(t.Context(), obj)).To(gomega.Succeed())
	}
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "parent-007-config", Namespace: namespace}}
	g.Eventually(func() error { return cluster.Client().Get(t.Context(), client.ObjectKeyFromObject(child), child) }).Should(gomega.Succeed())
	g.Expect(cluster.Client().Patch(t.Context(), child, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"size":"9"}}`)), client.FieldOwner("somebody"))).To(gomega.Succeed())
	g.Eventually(func() (accepted string, err error) {
		seen := &unstructured.Unstructured{}
		seen.SetAPIVersion("v1")
		seen.SetKind("ConfigMap")
		err = cluster.Client().Get(t.Context(), client.ObjectKeyFromObject(child), seen)
		return fmt.Sprint(seen.GetAnnotations()), err
	}).Should(gomega.ContainSubstring("data.size"))

	// Another page waits until all is as it should be. That of the browser was not open yet.
	waiting := open(t, registry, namespace, false)
	count := func(state string) func() string {
		return func() string { return waiting.get("/objects?state=" + strings.ReplaceAll(state, " ", "+")) }
	}
	for state, want := range map[string]string{"failed": "5 objects<", "held": "3 objects<", "waiting": "50 objects<", "due": "0 objects<", "in progress": "0 objects<"} {
		waiting.Eventually(count(state), 2*testenv.Patience).Should(gomega.ContainSubstring(want), state)
	}
	s := open(t, registry, namespace, true)
	look(t, s, "TestManyObjects", fmt.Sprintf("-many=%d", *objects))
}
