package posting

import (
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// brief is long enough for posting unexpected events.
const brief = 300 * time.Millisecond

var examples = kopf.Resource(testenv.APIVersion, "kopfexamples")

type posts = settings.Posting

// with changes the settings of posting.
func with(change func(p *posts)) kopf.Settings {
	var s kopf.Settings
	change(&s.Posting)
	return s
}

// scene is an operator with handlers that log, and the results.
type scene struct {
	*gomega.WithT
	*kopf.Registry
	t         *testing.T
	settings  kopf.Settings
	namespace string
	config    *rest.Config
	requests  *testenv.CountingTransport
	logs      *operators.Journal
	calls     *operators.Calls
}

func newScene(t *testing.T, s kopf.Settings) *scene {
	config := cluster.Config()
	return &scene{
		WithT: gomega.NewWithT(t), Registry: kopf.NewRegistry(), t: t, settings: s, namespace: cluster.Namespace(t),
		config: config, requests: testenv.Count(config), logs: &operators.Journal{}, calls: &operators.Calls{},
	}
}

// start runs the operator.
func (s *scene) start() *scene {
	s.t.Helper()
	operators.Start(s.t, s.config, s.namespace, s.Registry, func(o *kopf.Options) {
		namespaces := o.Settings.Scope.Namespaces
		o.Logger, o.Settings = s.logs.Logger(), s.settings
		o.Settings.Scope.Namespaces = namespaces
	})
	return s
}

func (s *scene) create(name string) *unstructured.Unstructured {
	s.t.Helper()
	obj := testenv.NewObject("KopfExample", s.namespace, name, map[string]any{"token": "s3cret"})
	s.Expect(cluster.Client().Create(s.t.Context(), obj)).To(gomega.Succeed())
	return obj
}

// expectHandled waits for the number of handled objects.
func (s *scene) expectHandled(count int) {
	s.t.Helper()
	s.Eventually(func() []string { return s.logs.With("The creation is processed") }).Should(gomega.HaveLen(count), s.logs.String)
}
