package lifecycle

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

var widgets = kopf.Resource("conditions.example.com", "v1", "widgets")

// silence is an API server that does not answer some requests of an operator.
type silence struct {
	*gomega.WithT
	t         *testing.T
	namespace string
	faults    *testenv.Faults
	begun     chan struct{} // has an item after the first such request
	options   kopf.Options
}

func newSilence(t *testing.T) *silence {
	t.Helper()
	namespace := cluster.Namespace(t)
	s := &silence{WithT: gomega.NewWithT(t), t: t, namespace: namespace, begun: make(chan struct{}, 1)}
	s.options = kopf.Options{Registry: kopf.NewRegistry(), Config: cluster.Config(), Settings: scoped(namespace + "*")} // a pattern
	s.options.Settings.Name = "example.com"
	s.options.Settings.Execution.GracePeriod = 4 * time.Second
	s.options.Settings.Networking.RequestTimeout = 10 * time.Minute
	s.faults = testenv.Strike(s.options.Config)
	s.Expect(cluster.Client().Create(t.Context(), s.peering())).To(gomega.Succeed())
	s.Expect(cluster.Client().Create(t.Context(), s.widget())).To(gomega.Succeed())
	s.options.Registry.Ensure(widgets, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.Name()}}}, nil
	}, kopf.ID("children"))
	s.options.Registry.Conditions(widgets)
	s.options.Registry.OnChild(widgets, kopf.Resource("v1", "secrets"), func(context.Context, *kopf.ChildChange) error { return nil }, kopf.ID("look"))
	return s
}

func (s *silence) peering() *unstructured.Unstructured {
	return testenv.NewObject("KopfPeering", s.namespace, "default", nil)
}

func (s *silence) widget() *unstructured.Unstructured {
	widget := testenv.NewObject("Widget", s.namespace, "one", nil)
	widget.SetAPIVersion("conditions.example.com/v1")
	return widget
}

// begin lets the API server answer no request that is hit.
func (s *silence) begin(hits func(testenv.Request) bool) {
	s.faults.Begin(func(sent *http.Request, _ http.RoundTripper) (*http.Response, error) {
		select {
		case s.begun <- struct{}{}:
		default:
		}
		<-sent.Context().Done()
		return nil, context.Cause(sent.Context())
	}, hits)
}

// expectStop stops the operator when it waits for an answer. Nothing needs the grace period.
func (s *silence) expectStop(stop func() error) {
	s.t.Helper()
	s.Eventually(s.begun).Should(gomega.Receive())
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	s.Eventually(stopped).WithTimeout(s.options.Settings.Execution.GracePeriod).Should(gomega.Receive(gomega.Succeed()))
}

// asksFor reports whether a request is the question for a permission, by what is in it.
func asksFor(r testenv.Request, words ...string) bool {
	for _, word := range words {
		if !bytes.Contains(r.Body, []byte(word)) {
			return false
		}
	}
	return r.Resource == "selfsubjectaccessreviews"
}

// opens reports whether a request lists or watches a resource.
func opens(r testenv.Request, resource string) bool {
	return r.Resource == resource && (r.Method == testenv.MethodList || r.Method == testenv.MethodWatch)
}

// A shutdown does not wait for the requests of a start.
func TestShutdownDoesNotWaitForUnansweredRequests(t *testing.T) {
	t.Parallel()
	const definitions, definition = "customresourcedefinitions", "widgets.conditions.example.com"
	tests := map[string]func(testenv.Request) bool{
		"the resources of the cluster":             func(r testenv.Request) bool { return r.URI == "/api" || r.URI == "/apis" },
		"the permission to list definitions":       func(r testenv.Request) bool { return asksFor(r, definitions, "list") },
		"the permission to watch definitions":      func(r testenv.Request) bool { return asksFor(r, definitions, "watch") },
		"the definitions":                          func(r testenv.Request) bool { return opens(r, definitions) },
		"the permission to list namespaces":        func(r testenv.Request) bool { return asksFor(r, "namespaces", "list") },
		"the permission to watch namespaces":       func(r testenv.Request) bool { return asksFor(r, "namespaces", "watch") },
		"the namespaces":                           func(r testenv.Request) bool { return opens(r, "namespaces") },
		"the permission to read the definition":    func(r testenv.Request) bool { return asksFor(r, definition) },
		"the definition":                           func(r testenv.Request) bool { return r.Resource == definitions && r.Name == definition },
		"the objects":                              func(r testenv.Request) bool { return opens(r, "widgets") },
		"the children of handlers of children":     func(r testenv.Request) bool { return opens(r, "secrets") },
		"the children of functions of kopf.Ensure": func(r testenv.Request) bool { return opens(r, "configmaps") },
		"the resource of peerings":                 func(r testenv.Request) bool { return r.URI == "/apis/kopf.dev/v1" },
		"the peering":                              func(r testenv.Request) bool { return opens(r, "kopfpeerings") },
	}
	for name, hits := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSilence(t)
			s.begin(hits)
			_, stop := run(t, s.options)
			s.expectStop(stop)
		})
	}
}

// Before an operator works after another one, it compares what it has watched with the cluster.
func TestShutdownDoesNotWaitForTheComparisonAfterAPause(t *testing.T) {
	t.Parallel()
	s := newSilence(t)
	set := func(entry any) {
		t.Helper()
		merge, err := json.Marshal(map[string]any{"status": map[string]any{"other": entry}})
		s.Expect(err).NotTo(gomega.HaveOccurred())
		s.Expect(cluster.Client().Patch(t.Context(), s.peering(), client.RawPatch(types.MergePatchType, merge))).To(gomega.Succeed())
	}
	set(map[string]any{"priority": 100, "lifetime": 3600, "lastseen": time.Now().UTC().Format(time.RFC3339)})
	o, stop := run(t, s.options)
	s.Eventually(o.Ready()).Should(gomega.BeClosed())
	s.Eventually(func() bool { return o.State().Paused }).Should(gomega.BeTrue())
	s.begin(func(r testenv.Request) bool { return r.Resource == "widgets" && r.Method == testenv.MethodList })
	set(nil)
	s.expectStop(stop)
}

// An operator starts although the API server does not answer which permissions it has: the requests show that, too.
func TestUnansweredQuestionsForPermissionsEnd(t *testing.T) {
	t.Parallel()
	s := newSilence(t)
	s.options.Settings.Networking.RequestTimeout = time.Second
	s.begin(func(r testenv.Request) bool { return asksFor(r) })
	o, stop := run(t, s.options)
	s.Eventually(o.Ready()).Should(gomega.BeClosed())
	s.Eventually(cluster.Current(s.widget())).Should(testenv.HavePath("status.conditions", gomega.HaveLen(1)))
	s.Expect(stop()).To(gomega.Succeed())
}
