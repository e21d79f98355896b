package explain

import (
	"strings"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

var examples = kopf.Resource("kopf.dev", "v1", "kopfexamples")

// scene is a namespace with an operator whose objects are explained.
type scene struct {
	*gomega.WithT
	*kopf.Registry

	t         *testing.T
	namespace string
	settings  settings.Settings
	scheme    *runtime.Scheme // of typed handlers
	runs      *kopf.Registry  // of operators, if not that of the commands
	dialog    []string        // requests and their answers
}

func newScene(t *testing.T) *scene {
	t.Helper()
	t.Parallel()
	return &scene{WithT: gomega.NewWithT(t), Registry: kopf.NewRegistry(), t: t, namespace: cluster.Namespace(t), scheme: scheme.Scheme}
}

// start runs the operator.
func (s *scene) start() *operators.Operator {
	s.t.Helper()
	registry := s.Registry
	if s.runs != nil {
		registry = s.runs
	}
	return operators.Start(s.t, cluster.Config(), s.namespace, registry, func(o *kopf.Options) {
		scope := o.Settings.Scope
		o.Settings = s.settings
		o.Settings.Scope = scope
		o.Scheme = s.scheme
	})
}

func (s *scene) create(name string) *unstructured.Unstructured {
	s.t.Helper()
	obj := testenv.NewObject("KopfExample", s.namespace, name, nil)
	s.Expect(cluster.Client().Create(s.t.Context(), obj)).To(gomega.Succeed())
	return obj
}

func (s *scene) patch(obj client.Object, body string) {
	s.t.Helper()
	s.Expect(cluster.Client().Patch(s.t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(body)), client.FieldOwner("kubectl-edit"))).To(gomega.Succeed())
}

// patchStatus patches the status, which is a subresource.
func (s *scene) patchStatus(obj client.Object, body string) {
	s.t.Helper()
	s.Expect(cluster.Client().Status().Patch(s.t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(body)), client.FieldOwner("kubectl-edit"))).To(gomega.Succeed())
}

// explain returns what the command would say about the object "one".
func (s *scene) explain() string {
	s.t.Helper()
	said, err := s.explained("one")()
	s.Expect(err).NotTo(gomega.HaveOccurred())
	return strings.ReplaceAll(said.Text(inspect.Style{}), s.namespace, "NAMESPACE")
}

// explained asks about an object.
func (s *scene) explained(name string) func() (*inspect.Explanation, error) {
	return func() (*inspect.Explanation, error) {
		return s.connect().Explain(s.t.Context(), inspect.Target{Kind: "kopfexample", Namespace: s.namespace, Name: name})
	}
}

// connect returns the cluster for the commands of the operator.
func (s *scene) connect() *inspect.Cluster {
	s.t.Helper()
	handlers, err := s.Declarations().Handlers(s.scheme)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	c, err := inspect.Connect(s.t.Context(), cluster.Config(), inspect.Program{Handlers: handlers, Settings: s.settings})
	s.Expect(err).NotTo(gomega.HaveOccurred())
	c.CommandLine = inspect.CommandLine{Pattern: "./my-operator COMMAND"}
	return c
}

// isHandled waits until the object was handled.
func (s *scene) isHandled(obj *unstructured.Unstructured) {
	s.t.Helper()
	s.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation("kopf.zalando.org/last-handled-configuration", gomega.Not(gomega.BeEmpty())))
}

// peers returns what the command peers would say.
func (s *scene) peers() string {
	s.t.Helper()
	list, err := s.connect().Peers(s.t.Context(), "", "")
	s.Expect(err).NotTo(gomega.HaveOccurred())
	return strings.ReplaceAll(list.Text(inspect.Style{}), s.namespace, "NAMESPACE")
}

// object returns a reference to the object "one".
func (s *scene) object() *unstructured.Unstructured {
	return testenv.NewObject("KopfExample", s.namespace, "one", nil)
}
