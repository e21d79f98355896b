package kopftest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/kopf-go/kopf/internal/binaries"
	"github.com/kopf-go/kopf/internal/manifests"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver/discovery"
	"github.com/kopf-go/kopf/pkg/kopftest/internal/leaks"
)

// Cluster starts a real API server with its etcd for the test, and installs the custom
// resource definitions in files and directories, as CRDs does. It uses the programs in $KUBEBUILDER_ASSETS, as
// envtest does, or those that this project or setup-envtest have left in the cache of the user:
// of the version that this package knows, or else the newest. Without any, it builds them into
// the cache with the go command, which takes minutes, and says so on standard error: run the
// first test with -timeout 30m. There are no controllers in this cluster.
//
// A start takes about five seconds, so start one for many tests. It also works for
// GinkgoTB(). To see the log of operators, call ctrl.SetLogger before, or set their Logger.
func Cluster(t testing.TB, crds ...string) *rest.Config {
	t.Helper()
	definitions, err := manifests.Require(crds...)
	if err != nil {
		t.Fatal(err)
	}
	programs, err := findPrograms(t)
	if err != nil {
		t.Fatal(err)
	}
	silenceLibraries() // such as envtest
	environment := &envtest.Environment{BinaryAssetsDirectory: programs, CRDDirectoryPaths: manifests.Files(definitions)}
	// The directory alone is not enough: an empty environment variable would win.
	environment.ControlPlane.APIServer = &envtest.APIServer{Path: filepath.Join(programs, binaries.APIServer)}
	environment.ControlPlane.Etcd = &envtest.Etcd{Path: filepath.Join(programs, binaries.Etcd)}
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

// findPrograms returns the directory with the programs of a cluster, which it builds if there
// are none. A build that the time of the test does not suffice for is an error: otherwise the
// testing package would kill the test, and the build would go on.
func findPrograms(t testing.TB) (string, error) {
	known := discovery.Version()
	found, err := binaries.Find(known.Major + "." + known.Minor)
	if !errors.Is(err, binaries.ErrMissing) {
		return found, err
	}
	ctx, stop := beforeDeadline(t)
	defer stop()
	built, err := binaries.Build(ctx, binaries.Newest(), os.Stderr)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return "", errors.New("kube-apiserver and etcd cannot be built in the time of the test. A repetition goes on with what is " +
			"compiled already: run it with -timeout 30m, or set " + binaries.Variable + " to a directory with both programs")
	}
	if err != nil {
		return "", fmt.Errorf("%w. Set %s to a directory with kube-apiserver and etcd, such as the output of `setup-envtest use -p path`", err, binaries.Variable)
	}
	return built, nil
}

// deadlineMargin is the time that a test needs to end after a build that takes too long.
const deadlineMargin = 15 * time.Second

// beforeDeadline returns a context that ends with the test, and before the time of the test ends.
func beforeDeadline(t testing.TB) (context.Context, context.CancelFunc) {
	if limited, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if deadline, ok := limited.Deadline(); ok {
			return context.WithDeadline(t.Context(), deadline.Add(-deadlineMargin))
		}
	}
	return context.WithCancel(t.Context())
}

// readyTimeout is how long an operator may take to start in real time.
const readyTimeout = time.Minute

// Run starts an operator in real time, and returns when it is ready. It stops the operator at
// the end of the test, which fails if goroutines of the operator or of its handlers remain then.
// The connection is that of Cluster, of NewAPIServer, or of any other cluster for tests. The
// functions change the options, such as the scheme. To see the log, set the Logger, or call
// ctrl.SetLogger before.
//
// Wait for conditions in such a test. New is the better choice for most tests: it needs no
// waiting.
func Run(t testing.TB, config *rest.Config, registry *kopf.Registry, configure ...func(*kopf.Options)) *kopf.Operator {
	t.Helper()
	options := kopf.Options{Registry: registry, Config: config}
	for _, change := range configure {
		change(&options)
	}
	if options.Logger.GetSink() == nil {
		silenceLibraries()
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
