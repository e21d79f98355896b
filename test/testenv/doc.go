// Package testenv provides Kubernetes to tests: a control plane per test binary, a
// namespace per test, a count of the requests, and matchers to wait with.
//
//	var cluster *testenv.Cluster
//
//	func TestMain(m *testing.M) { testenv.Main(m, &cluster, testenv.Options{}) }
//
//	func TestSomething(t *testing.T) {
//		g := gomega.NewWithT(t)
//		config := cluster.Config()
//		requests := testenv.Count(config)
//		obj := testenv.NewObject("KopfExample", cluster.Namespace(t), "one", nil)
//		… start an operator with the config, create the object …
//		g.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation("key", "value"))
//		g.Expect(requests.Snapshot().Writes("kopfexamples")).To(gomega.Equal(2), "%s", requests)
//	}
//
// The API server is a real one with its default behavior, including lists, watches, and
// resource versions; Options.ShardedLists asks for more. There is no controller manager:
// namespaces are never finalized, owned objects are not collected, and pods do not run.
//
// Nothing here sleeps. Tests wait for a condition with Eventually, whose timeout is set
// by Main and Start, and for its absence with Consistently.
package testenv
