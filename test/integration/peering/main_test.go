// Package peering tests operators that meet in the peering objects of a real cluster.
// Lifetimes are short, because time is real here; the unit tests cover minutes and hours.
package peering

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/peering"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

func TestMain(m *testing.M) {
	testenv.Main(m, &cluster, testenv.Options{CRDs: []string{"config/crd/kopf.dev", "config/crd/zalando.org", testenv.ExampleCRDs}})
}

// operator is the peering of an operator, its notifications and its log.
type operator struct {
	*peering.Peering
	mu            sync.Mutex
	notifications []string
	log           []string
	stop          func() // and wait until it has left
}

// runPeering runs the peering of an operator with an identity until the test ends. The
// peering of a test is named after its namespace.
func runPeering(t *testing.T, config *rest.Config, identity string, s settings.Peering, namespaces ...string) *operator {
	t.Helper()
	o := &operator{}
	joined, err := peering.New(config, nil, peering.Options{
		Settings: s, Identity: identity, Namespaced: len(namespaces) > 0, Namespaces: namespaces,
		Notify: func(paused bool) {
			o.locked(func() {
				o.notifications = append(o.notifications, map[bool]string{true: "paused", false: "active"}[paused])
			})
		},
		Logger: logr.New(funcr.New(func(_, text string) { o.locked(func() { o.log = append(o.log, text) }) }, funcr.Options{}).GetSink()),
	})
	gomega.NewWithT(t).Expect(err).NotTo(gomega.HaveOccurred())
	o.Peering = joined
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		o.Run(ctx)
	}()
	o.stop = func() {
		cancel()
		<-stopped
	}
	t.Cleanup(o.stop)
	return o
}

func (o *operator) locked(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f()
}

// history returns all notifications.
func (o *operator) history() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.notifications)
}

// last returns the last notification.
func (o *operator) last() string {
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

// create creates a peering object.
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

// entries returns a function that reads the entries of a peering object.
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

// setEntry writes an entry of another operator, as if by hand; nil removes it.
func setEntry(t *testing.T, object *unstructured.Unstructured, identity string, entry map[string]any) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"status": map[string]any{identity: entry}})
	g := gomega.NewWithT(t)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(cluster.Client().Patch(t.Context(), object.DeepCopy(), client.RawPatch(types.MergePatchType, text))).To(gomega.Succeed())
}

const (
	api           = "kopf.dev/v1"
	oldAPI        = "zalando.org/v1"
	shortLifetime = 2 * time.Second
)
