package admission

import (
	"context"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	crwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// operator is an operator in a manager whose webhook server listens on loopback.
type operator struct {
	url       string // of its handlers
	ca        []byte
	namespace string
}

// start runs an operator of one namespace.
func start(t *testing.T, registry *kopf.Registry, adjust ...func(*rest.Config)) *operator {
	t.Helper()
	registry.OnValidate(examples, rejectProbe, kopf.Labels(map[string]kopf.Matcher{probeLabel: kopf.Present()}))
	mgr, serving := newManager(t, adjust...)
	o := &operator{
		url: "https://" + net.JoinHostPort(serving.LocalServingHost, strconv.Itoa(serving.LocalServingPort)) + "/kopf",
		ca:  serving.LocalServingCAData, namespace: cluster.Namespace(t),
	}
	settings := kopf.Settings{}
	settings.Scope.Namespaces = []string{o.namespace}
	if _, err := kopf.Add(mgr, kopf.Options{Registry: registry, Settings: settings}); err != nil {
		t.Fatal(err)
	}
	run(t, mgr.Start)
	return o
}

// newManager returns a manager, and the certificate of its webhook server.
func newManager(t *testing.T, adjust ...func(*rest.Config)) (manager.Manager, envtest.WebhookInstallOptions) {
	t.Helper()
	return newManagerWith(t, ctrl.Options{}, adjust...)
}

// newManagerWith is newManager with other options.
func newManagerWith(t *testing.T, options ctrl.Options, adjust ...func(*rest.Config)) (manager.Manager, envtest.WebhookInstallOptions) {
	t.Helper()
	serving := envtest.WebhookInstallOptions{}
	if err := serving.PrepWithoutInstalling(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = serving.Cleanup() })
	config := cluster.Config()
	for _, change := range adjust {
		change(config)
	}
	options.Metrics, options.Controller = metricsserver.Options{BindAddress: "0"}, crconfig.Controller{SkipNameValidation: new(true)}
	options.Logger = testenv.Logger()
	options.NewClient = func(config *rest.Config, options client.Options) (client.Client, error) {
		options.Cache = nil // the client of the handlers does not read from a cache
		return client.New(config, options)
	}
	options.WebhookServer = crwebhook.NewServer(crwebhook.Options{
		Host: serving.LocalServingHost, Port: serving.LocalServingPort, CertDir: serving.LocalServingCertDir,
	})
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		t.Fatal(err)
	}
	return mgr, serving
}

// run runs a function until the end of the test.
func run(t *testing.T, serve func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		gomega.NewWithT(t).Eventually(done).WithTimeout(time.Minute).Should(gomega.Receive(gomega.Succeed()))
	})
}
