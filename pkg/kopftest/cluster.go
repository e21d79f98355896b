package kopftest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// assetsVariable names the directory with the binaries of a control plane.
const assetsVariable = "KUBEBUILDER_ASSETS"

// Cluster starts a real API server with its etcd for the test, and installs the custom
// resource definitions in the directories. It uses the binaries in $KUBEBUILDER_ASSETS, as
// envtest does, or those that this project has built into the cache of the user. There are no
// controllers in this cluster.
//
// A start takes about five seconds, so start one for many tests. It also works for
// GinkgoTB().
func Cluster(t testing.TB, crds ...string) *rest.Config {
	t.Helper()
	binaries, err := findBinaries()
	if err != nil {
		t.Fatal(err)
	}
	environment := &envtest.Environment{
		BinaryAssetsDirectory: binaries, CRDDirectoryPaths: crds, ErrorIfCRDPathMissing: true,
	}
	config, err := environment.Start()
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Errorf("the API server cannot be stopped: %v", err)
		}
	})
	if err != nil {
		t.Fatalf("the API server cannot be started from %s: %v", binaries, err)
	}
	return config
}

// findBinaries returns the directory with kube-apiserver and etcd.
func findBinaries() (string, error) {
	if named := os.Getenv(assetsVariable); named != "" {
		return named, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	found, err := filepath.Glob(filepath.Join(cache, "kopf-go", "envtest", "*", "kube-apiserver"))
	if err != nil || len(found) == 0 {
		return "", errNoBinaries
	}
	return filepath.Dir(found[len(found)-1]), nil
}

// readyTimeout is how long an operator may take to start in real time.
const readyTimeout = time.Minute

// Run starts an operator in real time, and returns when it is ready. It stops the operator at
// the end of the test. The connection is that of Cluster, of NewAPIServer, or of any other
// cluster for tests. The functions change the options, such as the scheme.
//
// Wait for conditions in such a test. New is the better choice for most tests: it needs no
// waiting.
func Run(t testing.TB, config *rest.Config, registry *kopf.Registry, configure ...func(*kopf.Options)) *kopf.Operator {
	t.Helper()
	options := kopf.Options{Registry: registry, Config: config}
	for _, change := range configure {
		change(&options)
	}
	operator, err := kopf.NewOperator(options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- operator.Run(ctx) }()
	select {
	case <-operator.Ready():
	case err := <-ended:
		stop()
		t.Fatalf("the operator has ended: %v", err)
	case <-time.After(readyTimeout):
		stop()
		t.Fatalf("the operator is not ready after %v", readyTimeout)
	}
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the operator has ended with an error: %v", err)
		}
	})
	return operator
}
