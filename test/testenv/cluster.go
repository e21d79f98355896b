package testenv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/kopf-go/kopf/hack/envtest/assets"
	"github.com/kopf-go/kopf/hack/envtest/controlplane"
)

// The default timeout and polling interval of Eventually. The timeout costs time only
// when a test fails, so it suits a slow machine under the race detector.
const (
	Patience = 30 * time.Second
	Polling  = 20 * time.Millisecond
)

// The directories of resource definitions, relative to the root of the repository.
const (
	ExampleCRDs = "examples/crd"
	FixtureCRDs = "test/testenv/crd"
)

// Options configures a cluster. The zero value suits most tests.
type Options struct {
	// CRDs lists the directories of the definitions to install, relative to the root
	// of the repository. Default: ExampleCRDs and FixtureCRDs.
	CRDs []string
	// Flags are added to the flags of kube-apiserver, without dashes.
	Flags map[string]string
}

// Cluster is the control plane of a test binary. It is safe for concurrent use.
type Cluster struct {
	plane  *controlplane.ControlPlane
	client client.WithWatch
}

// Main implements TestMain: it runs the tests of a package with one control plane,
// which is stored in *cluster before the first test starts.
func Main(m *testing.M, cluster **Cluster, options Options) {
	started, err := start(options)
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting the control plane of the tests:", err)
		os.Exit(1)
	}
	*cluster = started
	code := m.Run()
	if err := started.plane.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stopping the control plane:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// Start runs a control plane for one test, or for a whole ginkgo suite if you call it
// in BeforeSuite with GinkgoTB(). Prefer Main in all other cases, because a start takes
// five seconds.
func Start(t testing.TB, options Options) *Cluster {
	t.Helper()
	cluster, err := start(options)
	if err != nil {
		t.Fatal("starting the control plane of the tests: ", err)
	}
	t.Cleanup(func() {
		if err := cluster.plane.Stop(); err != nil {
			t.Error("stopping the control plane: ", err)
		}
	})
	return cluster
}

func start(options Options) (*Cluster, error) {
	gomega.SetDefaultEventuallyTimeout(Patience)
	gomega.SetDefaultEventuallyPollingInterval(Polling)
	gomega.SetDefaultConsistentlyPollingInterval(Polling)
	plane, err := controlplane.Start(controlplane.Options{Flags: options.Flags})
	if err != nil {
		return nil, err
	}
	cluster := &Cluster{plane: plane}
	if err := cluster.prepare(options.CRDs); err != nil {
		return nil, errors.Join(err, plane.Stop())
	}
	return cluster, nil
}

func (c *Cluster) prepare(crds []string) error {
	root, err := assets.Root()
	if err != nil {
		return err
	}
	if crds == nil {
		crds = []string{ExampleCRDs, FixtureCRDs}
	}
	install := envtest.CRDInstallOptions{ErrorIfPathMissing: true}
	for _, dir := range crds {
		install.Paths = append(install.Paths, filepath.Join(root, dir))
	}
	if _, err := envtest.InstallCRDs(c.plane.Config(), install); err != nil {
		return fmt.Errorf("installing the definitions in %v: %w", crds, err)
	}
	c.client, err = client.NewWithWatch(c.Config(), client.Options{})
	return err
}

// Config returns a copy of the configuration of an administrator, without a rate
// limit.
func (c *Cluster) Config() *rest.Config {
	config := c.plane.Config()
	config.QPS, config.Burst = -1, 0
	return config
}

// Client returns a client that reads from the API server, never from a cache. No
// CountingTransport counts its requests.
func (c *Cluster) Client() client.WithWatch { return c.client }

// KubeConfig returns the content of a kubeconfig file, for child processes.
func (c *Cluster) KubeConfig() []byte { return c.plane.KubeConfig() }
