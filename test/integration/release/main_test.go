// Package release tests on an API server that the state of operators is removed from objects, and
// what the other commands about operators read.
package release

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apimeta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/cli/release"
	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

func TestMain(m *testing.M) {
	testenv.Main(m, &cluster, testenv.Options{CRDs: []string{"config/crd/kopf.dev", testenv.ExampleCRDs}})
}

const (
	prefix    = "kopf.zalando.org/"
	finalizer = prefix + "KopfFinalizerMarker"
	open      = `{"started":"2026-01-01T00:00:00.000000+00:00","purpose":"create","retries":1}`
)

// scene is a resource with objects that only one test uses.
type scene struct {
	*gomega.WithT
	t          *testing.T
	resource   schema.GroupVersionResource
	kind       string
	definition *apiextensionsv1.CustomResourceDefinition
	namespace  string
	objects    dynamic.ResourceInterface
	registry   *kopf.Registry
	settings   settings.Settings
}

// newScene defines a resource with the status as a subresource, or not, and handlers for it.
func newScene(t *testing.T, hasStatus bool) *scene {
	t.Helper()
	s := &scene{WithT: gomega.NewWithT(t), t: t, registry: kopf.NewRegistry(), namespace: cluster.Namespace(t)}
	group := strings.ReplaceAll(s.namespace, "-", "") + ".example.com"
	s.definition = testenv.Definition(group, "things", "Thing", "v1")
	if hasStatus {
		s.definition.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
	}
	s.Expect(apiextensionsv1.AddToScheme(cluster.Client().Scheme())).To(gomega.Succeed())
	s.Expect(cluster.Client().Create(t.Context(), s.definition)).To(gomega.Succeed())
	s.resource, s.kind = schema.GroupVersionResource{Group: group, Version: "v1", Resource: "things"}, "Thing"
	objects, err := dynamic.NewForConfig(cluster.Config())
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.objects = objects.Resource(s.resource).Namespace(s.namespace)
	s.Eventually(func() error { _, err := s.objects.List(t.Context(), apimeta.ListOptions{}); return err }).Should(gomega.Succeed())
	s.registry.OnCreate(s.things(), func(context.Context, *kopf.Change) error { return nil }, kopf.ID("fn"))
	s.registry.OnDelete(s.things(), func(context.Context, *kopf.Change) error { return nil }, kopf.ID("gone"))
	s.settings.Peering.Name, s.settings.Name = s.namespace, s.namespace
	return s
}

func (s *scene) things() kopf.Selector { return kopf.Resource(s.resource.Group, "v1", "things") }

// handled are the annotations that operators leave.
func handled() map[string]string {
	return map[string]string{
		prefix + "last-handled-configuration": "{\"spec\":{}}\n", prefix + "last-handled-configuration-started": "{}\n",
		prefix + "fn": open, prefix + "fn.sub": open, prefix + "touch-dummy": "2020", prefix + "requests-handled": "{}", prefix + "request-retry": "1 fn",
		prefix + "handled-revisions": `{"done":{"fn":"1"}}`,
	}
}

// theirs are annotations of others.
func theirs() map[string]string {
	return map[string]string{
		"other.example.com/fn": open, "other.example.com/kopf-managed": "yes", "example.com/text": "a\n\u00e4 ", "note": "{ }",
		prefix + "keep": "true", prefix + "kopf-ensured": "{}",
	}
}

// create creates objects with the state of an operator, and what others have added.
func (s *scene) create(number int, adjust ...func(*unstructured.Unstructured)) {
	s.t.Helper()
	var all sync.WaitGroup
	next := make(chan int)
	for range 8 {
		all.Go(func() {
			for i := range next {
				obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(i)}}}
				obj.SetGroupVersionKind(s.resource.GroupVersion().WithKind(s.kind))
				obj.SetName(fmt.Sprintf("a%05d", i))
				obj.SetFinalizers([]string{"example.com/first", finalizer, "example.com/last"})
				annotations := theirs()
				for key, value := range handled() {
					annotations[key] = value
				}
				obj.SetAnnotations(annotations)
				for _, change := range adjust {
					change(obj)
				}
				status := obj.Object["status"]
				made, err := s.objects.Create(s.t.Context(), obj, apimeta.CreateOptions{})
				if err == nil && status != nil && s.definition.Spec.Versions[0].Subresources != nil {
					made.Object["status"] = status
					_, err = s.objects.UpdateStatus(s.t.Context(), made, apimeta.UpdateOptions{})
				}
				if err != nil {
					s.t.Error(err)
				}
			}
		})
	}
	for i := range number {
		next <- i
	}
	close(next)
	all.Wait()
}

// all returns the objects.
func (s *scene) all() []unstructured.Unstructured {
	s.t.Helper()
	list, err := s.objects.List(s.t.Context(), apimeta.ListOptions{})
	s.Expect(err).NotTo(gomega.HaveOccurred())
	return list.Items
}

func (s *scene) program() inspect.Program {
	s.t.Helper()
	handlers, err := s.registry.Declarations().Handlers(nil)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	return inspect.Program{Handlers: handlers, Conversions: s.registry.Declarations().Conversions(nil), Settings: s.settings}
}

// release runs a release with the configuration.
func (s *scene) release(ctx context.Context, config *rest.Config, adjust ...func(*release.Options)) (*release.Report, error) {
	s.t.Helper()
	options := release.Options{All: true, OperatorStopped: true}
	for _, change := range adjust {
		change(&options)
	}
	r, err := release.New(ctx, config, s.program(), options)
	if err != nil {
		return nil, err
	}
	return r.Run(ctx)
}

func dryRun(o *release.Options) { o.DryRun = true }

// counted returns a configuration whose requests are counted.
func counted() (*rest.Config, *testenv.CountingTransport) {
	config := cluster.Config()
	return config, testenv.Count(config)
}

// expectReleased expects that only what others have added is left.
func (s *scene) expectReleased(number int) {
	s.t.Helper()
	items := s.all()
	s.Expect(items).To(gomega.HaveLen(number))
	for _, obj := range items {
		s.Expect(obj.GetAnnotations()).To(gomega.Equal(theirs()))
		s.Expect(obj.GetFinalizers()).To(gomega.Equal([]string{"example.com/first", "example.com/last"}))
	}
}

// removeFinalizers removes the finalizers of others.
func (s *scene) removeFinalizers() {
	s.t.Helper()
	for _, obj := range s.all() {
		obj.SetFinalizers(nil)
		_, err := s.objects.Update(s.t.Context(), &obj, apimeta.UpdateOptions{})
		s.Expect(err).NotTo(gomega.HaveOccurred())
	}
}

// expectUninstalled deletes the definition, and expects that nothing holds it.
func (s *scene) expectUninstalled() {
	s.t.Helper()
	s.Expect(cluster.Client().Delete(s.t.Context(), s.definition)).To(gomega.Succeed())
	s.Eventually(func() bool {
		err := cluster.Client().Get(s.t.Context(), client.ObjectKeyFromObject(s.definition), &apiextensionsv1.CustomResourceDefinition{})
		return client.IgnoreNotFound(err) == nil && err != nil
	}).WithTimeout(2 * time.Minute).Should(gomega.BeTrue())
}

// text returns a value as JSON.
func text(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
