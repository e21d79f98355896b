package kopftest

import (
	"context"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver/discovery"
	"github.com/kopf-go/kopf/pkg/kopftest/internal/binaries"
	"github.com/kopf-go/kopf/pkg/kopftest/internal/leaks"
)

// Cluster starts a real API server with its etcd for the test, and installs the custom
// resource definitions in the directories. It uses the programs in $KUBEBUILDER_ASSETS, as
// envtest does, or those that this project or setup-envtest have left in the cache of the user:
// of the version that this package knows, or else the newest. There are no controllers in this
// cluster.
//
// A start takes about five seconds, so start one for many tests. It also works for
// GinkgoTB().
func Cluster(t testing.TB, crds ...string) *rest.Config {
	t.Helper()
	known := discovery.Version()
	programs, err := binaries.Find(known.Major + "." + known.Minor)
	if err != nil {
		t.Fatal(err)
	}
	environment := &envtest.Environment{
		BinaryAssetsDirectory: programs, CRDDirectoryPaths: crds, ErrorIfCRDPathMissing: true,
	}
	config, err := environment.Start()
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Errorf("the API server cannot be stopped: %v", err)
		}
	})
	if err != nil {
		t.Fatalf("the API server cannot be started from %s: %v", programs, err)
	}
	return config
}

// readyTimeout is how long an operator may take to start in real time.
const readyTimeout = time.Minute

// Run starts an operator in real time, and returns when it is ready. It stops the operator at
// the end of the test, which fails if goroutines of the operator or of its handlers remain then.
// The connection is that of Cluster, of NewAPIServer, or of any other
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
	family := leaks.Go(func() { ended <- operator.Run(ctx) })
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
		for _, stack := range family.Remaining(leakPatience) {
			t.Errorf("a goroutine remains after the operator has stopped:\n%s", stack)
		}
	})
	return operator
}

// leakPatience is how long goroutines may take to end after the operator.
const leakPatience = 5 * time.Second
