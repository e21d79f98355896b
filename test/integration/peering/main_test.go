// Package peering shows operators that meet in the peering objects of a real
// cluster. Time passes for real here, so lifetimes are short; what happens in
// minutes and hours is tested beside the code.
package peering

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/peering"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

func TestMain(m *testing.M) {
	testenv.Main(m, &cluster, testenv.Options{CRDs: []string{"config/crd/kopf.dev", "config/crd/zalando.org", testenv.ExampleCRDs}})
}

// operator is the peering of an operator, and what it has told.
type operator struct {
	*peering.Peering
	mu   sync.Mutex
	told []string
	log  []string
	stop func() // and wait until it has left
}

// join lets an operator take part under an identity. It is stopped with the test.
// The peering of a test is named after its namespace.
func join(t *testing.T, config *rest.Config, identity string, s settings.Peering, namespaces ...string) *operator {
	t.Helper()
	o := &operator{}
	joined, err := peering.New(config, nil, peering.Options{
		Settings: s, Identity: identity, Namespaced: len(namespaces) > 0, Namespaces: namespaces,
		Notify: func(paused bool) {
			o.note(func() { o.told = append(o.told, map[bool]string{true: "paused", false: "active"}[paused]) })
		},
		Logger: logr.New(funcr.New(func(_, text string) { o.note(func() { o.log = append(o.log, text) }) }, funcr.Options{}).GetSink()),
	})
	gomega.NewWithT(t).Expect(err).NotTo(gomega.HaveOccurred())
	o.Peering = joined
	ctx, cancel := context.WithCancel(context.Background())
	left := make(chan struct{})
	go func() {
		defer close(left)
		o.Run(ctx)
	}()
	o.stop = func() {
		cancel()
		<-left
	}
	t.Cleanup(o.stop)
	return o
}

func (o *operator) note(what func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	what()
}

// history is what was told so far.
func (o *operator) history() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.told)
}

// now is what was told last.
func (o *operator) now() string {
	history := o.history()
	if len(history) == 0 {
		return "nothing"
	}
	return history[len(history)-1]
}

func (o *operator) lines() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.log)
}

// create makes a peering object.
func create(t *testing.T, on *testenv.Cluster, apiVersion, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	object := newObject(apiVersion, namespace, name)
	gomega.NewWithT(t).Expect(on.Client().Create(t.Context(), object)).To(gomega.Succeed())
	return object
}

func newObject(apiVersion, namespace, name string) *unstructured.Unstructured {
	kind := "KopfPeering"
	if namespace == "" {
		kind = "ClusterKopfPeering"
	}
	object := testenv.NewObject(kind, namespace, name, nil)
	object.SetAPIVersion(apiVersion)
	return object
}

// entries are those of a peering object, each time it is asked.
func entries(on *testenv.Cluster, object *unstructured.Unstructured) func() (map[string]any, error) {
	current := on.Current(object)
	return func() (map[string]any, error) {
		found, err := current()
		if err != nil {
			return nil, err
		}
		status, _, err := unstructured.NestedMap(found.Object, "status")
		return status, err
	}
}

const (
	api    = "kopf.dev/v1"
	oldAPI = "zalando.org/v1"
	brief  = 2 * time.Second
)
