// Package kopftest tests operators and their handlers without a cluster.
//
// New runs an operator against an API server in memory, in virtual time: a retry after an
// hour takes no time, and the test decides when the operator stops, restarts, or crashes. It
// is for tests with a *testing.T, in a bubble of testing/synctest:
//
//	func TestClaims(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			h := kopftest.New(t, handlers, kopftest.CRDs("../config/crd"))
//			claim := kopftest.Object(`{apiVersion: example.com/v1, kind: Claim, metadata: {name: one, namespace: ns}}`)
//			h.Create(claim)
//			h.Advance(time.Hour)
//			...
//		})
//	}
//
// The bubble is created by the test and not by this package, so that a test can have its own
// goroutines, clients, and subtests in it, as in any other test of virtual time.
//
// Call calls one handler for an object, without an operator.
//
// NewAPIServer starts the API server alone, Cluster starts a real one, and Run runs an
// operator on either of them in real time, also for suites of other frameworks.
//
// Operators do not contain anything of this package or of its dependencies.
package kopftest
