package health

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/reconcile"
)

// checkResult is one line of the readiness.
type checkResult struct {
	name    string
	problem string // empty: there is none
	note    string // of what is as it should be
}

// String is the line, as those of the API server's own endpoint.
func (c checkResult) String() string {
	switch {
	case c.problem != "":
		return fmt.Sprintf("[-]%s %s", c.name, c.problem)
	case c.note != "":
		return fmt.Sprintf("[+]%s ok: %s", c.name, c.note)
	default:
		return fmt.Sprintf("[+]%s ok", c.name)
	}
}

// runChecks looks at everything that an operator needs to do its work.
func runChecks(o Operator, stall time.Duration) []checkResult {
	state, watching := o.State(), o.Watching()
	var all []checkResult
	for _, w := range watching {
		all = append(all, checkWatch(w))
	}
	if asked, ok := o.(AdmissionOperator); ok {
		all = append(all, checkResult{name: "admission", problem: asked.AdmissionProblem()})
	}
	return append(all, checkStart(state), checkQueue(state.Queue, stall), checkHandling(state))
}

func checkWatch(w reconcile.Watching) checkResult {
	c := checkResult{name: w.Resource}
	if w.Namespace != "" {
		c.name += " in " + w.Namespace
	}
	switch {
	case !w.Listed && w.Err != nil:
		c.problem = "not listed yet: " + describeError(w.Err)
	case !w.Listed:
		c.problem = "not listed yet"
	case w.Err != nil:
		c.problem = "not watched now: " + describeError(w.Err)
	}
	return c
}

func checkStart(state metrics.State) checkResult {
	c := checkResult{name: "start"}
	if !state.Ready {
		c.problem = "not all objects are known that were there at the beginning"
	}
	return c
}

func checkQueue(q metrics.Queue, stall time.Duration) checkResult {
	c := checkResult{name: "queue"}
	if q.Oldest > stall {
		c.problem = fmt.Sprintf("stands still: %d objects wait, the first of them for %s; %d of %d workers are busy",
			q.Depth, q.Oldest.Round(time.Second), q.Busy, q.Workers)
	}
	return c
}

func checkHandling(state metrics.State) checkResult {
	c := checkResult{name: "handling"}
	switch {
	case !state.Leading:
		c.note = "this replica stands by"
	case state.Paused:
		c.note = "paused, for another operator handles the objects"
	}
	return c
}

// ReadyCheck makes a check for the readiness of an operator: an error with what is wrong,
// one line each. It has the type of controller-runtime's healthz.Checker. The stall
// is how long an object may wait for a worker.
func ReadyCheck(o Operator, stall time.Duration) func(*http.Request) error {
	return func(*http.Request) error {
		var problems []error
		for _, c := range runChecks(o, stall) {
			if c.problem != "" {
				problems = append(problems, errors.New(c.name+" "+c.problem))
			}
		}
		return errors.Join(problems...)
	}
}

// readinessResponse is the answer of the endpoint.
func readinessResponse(o Operator, stall time.Duration) response {
	status, verdict := http.StatusOK, "ready"
	var lines []string
	for _, c := range runChecks(o, stall) {
		if lines = append(lines, c.String()); c.problem != "" {
			status, verdict = http.StatusServiceUnavailable, "not ready"
		}
	}
	return textResponse(status, strings.Join(append(lines, verdict), "\n"))
}
