package testenv

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/kopf-go/kopf/hack/envtest/assets"
	"github.com/kopf-go/kopf/internal/controlplane"
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
	// Parallel is how many tests run at the same time. Tests wait more than they compute, so it can be
	// more than there are processors. Default: as many as processors.
	Parallel int
	// Flags are added to the flags of kube-apiserver, without dashes.
	Flags map[string]string
	// ShardedLists turns on the feature gate ShardedListAndWatch if the API server has it, which HasShardedLists
	// reports.
	ShardedLists bool
	// Webhooks reaches admission webhooks from the API server in memory. Default: they cannot be reached.
	Webhooks http.RoundTripper
}

// Existing is the environment variable with the kubeconfig file of a control plane that
// another test binary has started and prepared: a start takes five seconds.
const Existing = "KOPF_TEST_KUBECONFIG"

// Cluster is the control plane of a test binary. It is safe for concurrent use.
type Cluster struct {
	stop       func() error // nil if there is nothing to stop
	kubeconfig []byte
	config     *rest.Config
	client     client.WithWatch
	late       client.Client // as late as the operators

	shardedLists bool

	definitions []string // the folders of the installed definitions
}

// Main implements TestMain: it runs the tests of a package with one control plane,
// which is stored in *cluster before the first test starts.
func Main(m *testing.M, cluster **Cluster, options Options) {
	ctrl.SetLogger(Logger())
	if options.Parallel > 0 {
		_ = flag.Set("test.parallel", strconv.Itoa(options.Parallel)) // a flag on the command line takes precedence
	}
	started, err := Open(options)
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting the control plane of the tests:", err)
		os.Exit(1)
	}
	*cluster = started
	code := m.Run()
	if err := started.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "stopping the control plane:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// Start runs a control plane for one test. Prefer Main, because a start takes five seconds.
func Start(t testing.TB, options Options) *Cluster {
	t.Helper()
	cluster, err := Open(options)
	if err != nil {
		t.Fatal("starting the control plane of the tests: ", err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Error("stopping the control plane: ", err)
		}
	})
	return cluster
}

// Open starts a control plane for a suite, which must close it.
func Open(options Options) (*Cluster, error) {
	setPatience()
	if path := os.Getenv(Existing); path != "" {
		kubeconfig, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		return Connect(kubeconfig)
	}
	if os.Getenv(Server) == InMemory {
		return openInMemory(options)
	}
	programs, err := assets.Find()
	if err != nil {
		return nil, err
	}
	flags, shardedLists := options.Flags, false
	if options.ShardedLists {
		if shardedLists, err = canShardLists(programs); err != nil {
			return nil, err
		}
	}
	if shardedLists {
		flags = withShardedLists(flags)
	}
	plane, err := controlplane.Start(programs, controlplane.Options{Flags: flags})
	if err != nil {
		return nil, err
	}
	cluster := &Cluster{stop: plane.Stop, kubeconfig: plane.KubeConfig(), config: plane.Config(), shardedLists: shardedLists}
	if err := cluster.prepare(options.CRDs); err != nil {
		return nil, errors.Join(err, plane.Stop())
	}
	return cluster, nil
}

// Connect uses a control plane that another process has opened.
func Connect(kubeconfig []byte) (*Cluster, error) {
	setPatience()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	cluster := &Cluster{kubeconfig: kubeconfig, config: config}
	err = cluster.connect()
	return cluster, err
}

// setPatience sets the defaults of gomega for the process, once: another cluster must not take back
// what a test has set.
var setPatience = sync.OnceFunc(func() {
	gomega.SetDefaultEventuallyTimeout(Patience)
	gomega.SetDefaultEventuallyPollingInterval(Polling)
	gomega.SetDefaultConsistentlyPollingInterval(Polling)
})

// Close stops the control plane, unless another process has opened it.
func (c *Cluster) Close() error {
	if c.stop == nil {
		return nil
	}
	return c.stop()
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
	c.definitions = install.Paths
	installed, err := envtest.InstallCRDs(c.Config(), install)
	if err == nil {
		err = c.awaitStorage(installed)
	}
	if err != nil {
		return fmt.Errorf("installing the definitions in %v: %w", crds, err)
	}
	return c.connect()
}

// awaitStorage waits until the API server accepts watches of the objects of definitions. It refuses them for a
// while after the definitions are established, and a test that counts requests would count another one.
func (c *Cluster) awaitStorage(definitions []*apiextensionsv1.CustomResourceDefinition) error {
	api, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		return err
	}
	var all errgroup.Group
	for _, d := range definitions {
		for _, version := range d.Spec.Versions {
			if !version.Served {
				continue
			}
			resource := schema.GroupVersionResource{Group: d.Spec.Group, Version: version.Name, Resource: d.Spec.Names.Plural}
			all.Go(func() error {
				ctx, cancel := context.WithTimeout(context.Background(), Patience)
				defer cancel()
				started, err := api.Resource(resource).Watch(ctx, metav1.ListOptions{}) // it retries while the answer is 429
				if err == nil {
					started.Stop()
				}
				return err
			})
		}
	}
	return all.Wait()
}

// connect creates the client, and makes later ones late if the environment says so.
func (c *Cluster) connect() error {
	prompt, err := client.NewWithWatch(c.Config(), client.Options{})
	if err != nil {
		return err
	}
	if err := delay(c.config); err != nil {
		return err
	}
	c.client = prompt
	c.late, err = client.New(c.Config(), client.Options{})
	return err
}

// Config returns a copy of the configuration of an administrator, without a rate
// limit.
func (c *Cluster) Config() *rest.Config {
	noteVariables()
	config := rest.CopyConfig(c.config)
	config.QPS, config.Burst = -1, 0
	return config
}

// Client returns a client that reads from the API server, never from a cache. No
// CountingTransport counts its requests.
func (c *Cluster) Client() client.WithWatch {
	noteVariables()
	return c.client
}

// KubeConfig returns the content of a kubeconfig file, for child processes of the test binary
// that has started the control plane.
func (c *Cluster) KubeConfig() []byte { return c.kubeconfig }

// Logger returns a logger for operators. It writes only if KOPF_TEST_LOG is set.
func Logger() logr.Logger {
	if os.Getenv("KOPF_TEST_LOG") == "" {
		return logr.Discard()
	}
	return zap.New(zap.UseDevMode(true))
}
