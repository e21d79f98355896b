// Package e2e runs every example as its users do: as a separate program, on a real API server.
// The operators have the permissions that their command "rbac" prints, and no others. The
// expectations about the cluster and the program's output come from the comments of the
// example and from docs/tutorial.md.
//
// It is a Ginkgo suite. Its processes share one control plane, which the first one starts:
//
//	make e2e
//	make e2e TESTFLAGS='--label-filter=admission'
//
// There is no controller manager: pods do not run, volumes are not bound, and owned objects are
// not collected, so the tests check the owner references.
package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/test/testenv"
)

// specTimeout is many times what a spec takes on a busy machine: it ends a spec that hangs.
const specTimeout = 5 * time.Minute

var cluster *testenv.Cluster

var suite sharedSuite

// scenarios has a test for each example.
var scenarios = map[string]struct {
	test   func(testing.TB, *example)
	labels ginkgo.Labels
}{
	"01-minimal":     {testMinimal, nil},
	"02-children":    {testChildren, nil},
	"03-exceptions":  {testExceptions, nil},
	"04-events":      {testEvents, nil},
	"05-handlers":    {testHandlers, nil},
	"06-peering":     {testPeering, ginkgo.Label("peering")},
	"07-subhandlers": {testSubhandlers, nil},
	"08-events":      {testWatchEvents, nil},
	"09-testing":     {testTesting, nil},
	"10-builtins":    {testBuiltins, nil},
	"11-filtering":   {testFiltering, nil},
	"12-embedded":    {testEmbedded, ginkgo.Label("embedding")},
	"13-hooks":       {testHooks, nil},
	"14-daemons":     {testDaemons, ginkgo.Label("background")},
	"15-timers":      {testTimers, ginkgo.Label("background")},
	"16-indexing":    {testIndexing, nil},
	"17-admission":   {testAdmission, ginkgo.Label("admission")},
	"18-types":       {testTypes, nil},
	"20-children":    {testEnsure, nil},
	"21-drift":       {testDrift, nil},
	"22-rollout":     {testRollout, nil},
	"23-shards":      {testShards, nil},
	"24-steps":       {testSteps, nil},
	"25-conversion":  {testConversion, ginkgo.Label("admission")},
	"99-all-at-once": {testAllAtOnce, ginkgo.Label("admission")},
	"storage":        {testStorage, nil},
	"tutorial":       {testTutorial, nil},
	"typed":          {testTyped, ginkgo.Label("embedding")},
}

func TestExamples(t *testing.T) {
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.RunSpecs(t, "Examples")
}

var _ = ginkgo.SynchronizedBeforeSuite(func() []byte {
	var err error
	suite.Dir, err = os.MkdirTemp("", "kopf-e2e-")
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	flags, err := suite.log().Flags()
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	cluster, err = testenv.Open(testenv.Options{CRDs: []string{testenv.ExampleCRDs, "config/crd/kopf.dev"}, Flags: flags})
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	suite.KubeConfig = cluster.KubeConfig()
	shared, err := json.Marshal(suite)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return shared
}, func(shared []byte) {
	if cluster != nil {
		return // this process has started it
	}
	gomega.Expect(json.Unmarshal(shared, &suite)).To(gomega.Succeed())
	connected, err := testenv.Connect(suite.KubeConfig)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	cluster = connected
})

var _ = ginkgo.SynchronizedAfterSuite(func() {}, func() {
	if cluster == nil {
		return
	}
	defer func() {
		gomega.Expect(cluster.Close()).To(gomega.Succeed())
		gomega.Expect(os.RemoveAll(suite.Dir)).To(gomega.Succeed())
	}()
	checkUsedRoles(ginkgo.GinkgoTB())
})

var _ = ginkgo.Describe("The example", func() {
	for _, name := range slices.Sorted(maps.Keys(scenarios)) {
		scenario := scenarios[name]
		ginkgo.It(name, scenario.labels, ginkgo.SpecTimeout(specTimeout), func(ginkgo.SpecContext) {
			t := ginkgo.GinkgoTB()
			e := build(t, name)
			e.permit(t)
			scenario.test(t, e)
		})
	}
	for _, name := range clusterWide {
		ginkgo.It(name+" for all namespaces", ginkgo.Serial, ginkgo.SpecTimeout(specTimeout), func(ginkgo.SpecContext) {
			t := ginkgo.GinkgoTB()
			e := build(t, name)
			e.wide = true
			e.permit(t)
			testClusterWide(t, e)
		})
	}
})

// An example without a test is not executed.
var _ = ginkgo.It("has a test for every example", func() {
	var names []string
	for _, source := range files(ginkgo.GinkgoTB(), "examples/*/main.go") {
		names = append(names, filepath.Base(filepath.Dir(source)))
	}
	gomega.Expect(slices.Collect(maps.Keys(scenarios))).To(gomega.ConsistOf(names))
})
