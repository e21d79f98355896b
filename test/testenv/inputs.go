package testenv

import (
	"os"

	"github.com/kopf-go/kopf/hack/source"
	"github.com/kopf-go/kopf/internal/binaries"
)

// The go command takes the result of a test from its cache unless a variable or a file has changed
// that the tests have looked at. What TestMain does before them does not count, so they look again.

// noteVariables looks at the variables that choose the control plane.
func noteVariables() {
	for _, name := range []string{Server, Existing, Latency, binaries.Variable} {
		os.Getenv(name)
	}
}

// noteInputs looks at all that the results of tests depend on besides their code.
func (c *Cluster) noteInputs() error {
	noteVariables()
	return source.Inputs(c.definitions...)
}
