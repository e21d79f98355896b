// Package e2e runs every example as its users do: as a separate program, on a real API server.
// The expectations about the cluster and the program's output come from the comments of the
// example and from docs/tutorial.md.
//
// There is no controller manager: pods do not run, volumes are not bound, and owned objects are
// not collected, so the tests check the owner references.
package e2e

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

func TestMain(m *testing.M) {
	// The tests wait more than they compute. A flag on the command line takes precedence.
	_ = flag.Set("test.parallel", "4")
	testenv.Main(m, &cluster, testenv.Options{CRDs: []string{testenv.ExampleCRDs, "config/crd/kopf.dev"}})
}

// TestExamples fails for an example without a test, because each one must be executed.
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
