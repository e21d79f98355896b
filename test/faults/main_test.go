package faults

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

// chosen selects one experiment: go test ./test/faults -plan life/k=2/crash-after.
var chosen = flag.String("plan", "", "the only experiment to make, as a failed test names it: scenario/k=N/fault, or scenario")

// experiments is the number of concurrent experiments, which mostly wait.
const experiments = "20"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", experiments); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ctrl.SetLogger(operators.Logger())
	klog.SetLogger(operators.Logger()) // client-go logs a lot about broken watches
	testenv.Main(m, &cluster, testenv.Options{
		CRDs: definitionFiles,
	})
}

// definitionFiles are those of all objects.
var definitionFiles = []string{testenv.ExampleCRDs, testenv.FixtureCRDs, "config/crd/kopf.dev/kopfpeerings.yaml"}
