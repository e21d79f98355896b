package revisions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

var errBroken = kopf.Permanent(errors.New("broken"))

// scene is a namespace with objects, and operators one after another.
type scene struct {
	*gomega.WithT
	t         *testing.T
	namespace string
	config    *rest.Config
	requests  *testenv.CountingTransport
	logs      *operators.Journal
	operator  *operators.Operator

	mu     sync.Mutex
	calls  map[string][]string // by object, each as "revision reason changes"
	broken map[string]bool     // objects for which the handler fails
}

func newScene(t *testing.T) *scene {
	t.Parallel()
	s := &scene{
		WithT: gomega.NewWithT(t), t: t, namespace: cluster.Namespace(t), config: cluster.Config(), logs: &operators.Journal{},
		calls: map[string][]string{}, broken: map[string]bool{},
	}
	s.requests = testenv.Count(s.config)
	return s
}

// handler returns a handler that notes its calls.
func (s *scene) handler(name string) func(context.Context, *kopf.Change) error {
	return func(_ context.Context, c *kopf.Change) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.calls[c.Name()] = append(s.calls[c.Name()], fmt.Sprintf("%s %s %d", name, c.Reason(), len(c.Diff())))
		if s.broken[c.Name()] {
			return errBroken
		}
		return nil
	}
}

// start runs an operator with one creation handler, which has the options.
func (s *scene) start(name string, options ...kopf.ChangeOption) {
	s.t.Helper()
	r := kopf.NewRegistry()
	r.OnCreate(examples, s.handler(name), append([]kopf.ChangeOption{kopf.ID("fn")}, options...)...)
	s.startWith(r)
}

func (s *scene) startWith(r *kopf.Registry) {
	s.t.Helper()
	s.logs = &operators.Journal{}
	s.operator = operators.Start(s.t, s.config, s.namespace, r, func(o *kopf.Options) {
		o.Logger = s.logs.Logger()
		o.Settings.Execution.CheckpointInterval = time.Hour
		o.Settings.Networking.QPS, o.Settings.Networking.Burst = 1000, 1000
	})
}

// rest waits until the operator has nothing left to do.
func (s *scene) rest() {
	s.t.Helper()
	s.Eventually(cluster.AtRest(s.requests)).Should(gomega.BeTrue())
}

func (s *scene) object(name string) *unstructured.Unstructured {
	return testenv.NewObject("KopfExample", s.namespace, name, map[string]any{"field": "value"})
}

// create creates objects with the numbers from 1.
func (s *scene) create(count int) {
	s.t.Helper()
	for n := range count {
		s.Expect(cluster.Client().Create(s.t.Context(), s.object(fmt.Sprintf("o%03d", n+1)))).To(gomega.Succeed())
	}
	s.Eventually(func() int { return len(s.marked("")) }).Should(gomega.BeNumerically(">=", count))
}

// list returns the current objects.
func (s *scene) list() []unstructured.Unstructured {
	s.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("kopf.dev/v1")
	list.SetKind("KopfExampleList")
	s.Expect(cluster.Client().List(s.t.Context(), list, client.InNamespace(s.namespace))).To(gomega.Succeed())
	return list.Items
}

// marked returns the names of the handled objects whose annotation contains a text.
func (s *scene) marked(text string) []string {
	s.t.Helper()
	var names []string
	for _, obj := range s.list() {
		if obj.GetAnnotations()[handled] != "" && strings.Contains(obj.GetAnnotations()[revisions], text) {
			names = append(names, obj.GetName())
		}
	}
	return names
}

func done(revision string) string { return `"done":{"fn":"` + revision + `"}` }

func failed(revision string) string { return `"failed":{"fn":"` + revision + `"}` }

func (s *scene) patch(name, merge string) {
	s.t.Helper()
	s.Expect(cluster.Client().Patch(s.t.Context(), s.object(name), client.RawPatch("application/merge-patch+json", []byte(merge)))).To(gomega.Succeed())
}

// take returns the calls since the last time, of all objects together, with their numbers.
func (s *scene) take() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[string]int{}
	for _, calls := range s.calls {
		for _, call := range calls {
			counts[call]++
		}
	}
	clear(s.calls)
	return counts
}

// called returns the names of the objects for which the handler was called.
func (s *scene) called() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.calls))
}

func (s *scene) setBroken(name string, broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken[name] = broken
}

// expectWrites expects the number of writes since the last time.
func (s *scene) expectWrites(count int) {
	s.t.Helper()
	s.rest()
	s.Expect(s.requests.Snapshot().Writes("kopfexamples")).To(gomega.Equal(count), "%s", s.requests)
	s.requests.Reset()
}
