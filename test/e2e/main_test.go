// Package e2e runs every example as its users do: as a program of its own, on a
// real API server. What is expected of it is what its comments and
// docs/tutorial.md say, in the cluster and in the program's output.
//
// There is no controller manager. Pods do not run, volumes are not bound, and
// owned objects are not collected: the tests look at the owner references.
package e2e

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

func TestMain(m *testing.M) {
	// The tests wait more than they compute. The command line still wins.
	_ = flag.Set("test.parallel", "4")
	testenv.Main(m, &cluster, testenv.Options{CRDs: []string{testenv.ExampleCRDs, "config/crd/kopf.dev"}})
}

// TestExamples fails for an example without a test: each one must be executed.
func TestExamples(t *testing.T) {
	tests := map[string]func(*testing.T, *example){
		"01-minimal":     testMinimal,
		"02-children":    testChildren,
		"03-exceptions":  testExceptions,
		"04-events":      testEvents,
		"05-handlers":    testHandlers,
		"06-peering":     testPeering,
		"07-subhandlers": testSubhandlers,
		"11-filtering":   testFiltering,
		"12-embedded":    testEmbedded,
		"13-hooks":       testHooks,
		"14-daemons":     testDaemons,
		"15-timers":      testTimers,
		"16-indexing":    testIndexing,
		"17-admission":   testAdmission,
		"storage":        testStorage,
		"tutorial":       testTutorial,
		"typed":          testTyped,
	}
	sources := files(t, "examples/*/main.go")
	if len(sources) != len(tests) {
		t.Errorf("there are %d examples and %d tests", len(sources), len(tests))
	}
	for _, source := range sources {
		name := filepath.Base(filepath.Dir(source))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test, known := tests[name]
			if !known {
				t.Fatal("this example has no test: add one to the table")
			}
			test(t, build(t, filepath.Dir(source)))
		})
	}
}
