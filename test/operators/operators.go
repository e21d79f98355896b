// Package operators runs operators in tests.
package operators

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// Operator is an operator that runs in a test.
type Operator struct {
	t      testing.TB
	cancel context.CancelFunc
	done   chan error
	// State returns the state of the operator.
	State func() kopf.OperatorState
}

// stopPatience is how long a test waits for an operator to stop.
const stopPatience = 30 * time.Second

// shownLines is how many lines of its operators' logs a failed test shows.
const shownLines = 50

// Start runs an operator in one namespace, and returns when it is ready. The operator
// is stopped at the end of the test, if not earlier. A failed test shows the end of its log.
func Start(t testing.TB, config *rest.Config, namespace string, registry *kopf.Registry, adjust ...func(*kopf.Options)) *Operator {
	t.Helper()
	journal := &Journal{}
	t.Cleanup(func() {
		if lines := journal.With(); t.Failed() && len(lines) > 0 {
			t.Logf("the operator has logged:\n%s", strings.Join(lines[max(0, len(lines)-shownLines):], "\n"))
		}
	})
	logger := testenv.Logger()
	if logger.IsZero() { // nobody reads the log, unless the test fails
		logger = journal.Logger()
	}
	options := kopf.Options{Registry: registry, Config: config, Logger: logger}
	if namespace != "" {
		options.Settings.Scope.Namespaces = []string{namespace}
	}
	options.Settings.Admission.ShutdownDelay = -1 // no API server learns late that the operator stops
	for _, change := range adjust {
		change(&options)
	}
	running, err := kopf.NewOperator(options)
	if err != nil {
		t.Fatalf("the operator cannot start: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	o := &Operator{t: t, cancel: cancel, done: make(chan error, 1), State: running.State}
	go func() { o.done <- running.Run(ctx) }()
	t.Cleanup(o.Stop)
	select {
	case <-running.Ready():
	case err := <-o.done:
		o.done <- err
		t.Fatalf("the operator did not start: %v", err)
	}
	return o
}

// Stop stops the operator and waits until it has returned.
func (o *Operator) Stop() {
	o.t.Helper()
	o.cancel()
	select {
	case err := <-o.done:
		o.done <- nil // for another call of Stop
		if err != nil {
			o.t.Errorf("the operator failed: %v", err)
		}
	case <-time.After(stopPatience):
		o.t.Errorf("the operator did not stop within %s", stopPatience)
	}
}
