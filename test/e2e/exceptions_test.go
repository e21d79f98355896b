package e2e

import (
	"testing"

	"github.com/onsi/gomega"
)

func testExceptions(t testing.TB, e *example) {
	g := gomega.NewWithT(t)
	operator := e.start(t)
	object := e.create(t)
	operator.says("The creation is processed: 3 succeeded; 3 failed.")
	g.Eventually(cluster.Current(object)).Should(beHandled())

	outcomes := []struct {
		handler, outcome string
		times            int
	}{
		{"temporaryFn", "the data is not there yet", 2},
		{"temporaryFn", "The handler succeeded.", 1},
		{"permanentFn", "the object is invalid", 1},
		{"arbitraryFn", "The handler failed and will be retried.", 2},
		{"arbitraryFn", "The handler failed permanently.", 1},
		{"arbitraryFn", "the network is down", 3},
		{"growingFn", "The handler failed and will be retried.", 3},
		{"growingFn", "The handler succeeded.", 1},
		{"ignoredFn", "this is ignored", 1},
		{"ignoredFn", "panic: a mistake in the handler", 1},
		{"timeoutFn", "the database is locked", 1},
		{"timeoutFn", "handler timeoutFn has timed out after 1s", 1},
	}
	for _, o := range outcomes {
		g.Eventually(operator.saidTimes).WithArguments(`"handler": "`+o.handler+`"`, o.outcome).Should(gomega.Equal(o.times),
			func() string { return o.handler + ": " + o.outcome + "\n" + operator.output() })
	}
	g.Eventually(cluster.Events(object)).Should(gomega.ContainElements(
		"Normal HandlerSucceeded: Handler temporaryFn succeeded.",
		"Warning HandlerRetrying: Handler temporaryFn will be retried: the data is not there yet",
		"Warning HandlerFailed: Handler permanentFn failed permanently: the object is invalid",
		"Warning HandlerFailed: Handler arbitraryFn failed permanently: handler arbitraryFn has used up its 3 attempts: the network is down",
		gomega.HavePrefix("Warning HandlerFailed: Handler timeoutFn failed permanently: handler timeoutFn has timed out after 1s"),
	))
}
