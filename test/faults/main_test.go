package faults

import (
	"flag"
	"testing"

	"k8s.io/klog/v2"

	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

// chosen selects one experiment: go test ./test/faults -plan life/k=2/crash-after.
var chosen = flag.String("plan", "", "the only experiment to make, as a failed test names it: scenario/k=N/fault, or scenario")

func TestMain(m *testing.M) {
	klog.SetLogger(testenv.Logger()) // client-go logs a lot about broken watches
	testenv.Main(m, &cluster, testenv.Options{CRDs: definitionFiles, Parallel: 20})
}

// definitionFiles are those of all objects.
var definitionFiles = []string{testenv.ExampleCRDs, testenv.FixtureCRDs, "config/crd/kopf.dev/kopfpeerings.yaml"}
