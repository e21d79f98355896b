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

// check is one line of the readiness.
type check struct {
	what    string
	problem string // empty: there is none
	remark  string // of what is as it should be
}

// String is the line, as those of the API server's own endpoint.
func (c check) String() string {
	switch {
	case c.problem != "":
		return fmt.Sprintf("[-]%s %s", c.what, c.problem)
	case c.remark != "":
		return fmt.Sprintf("[+]%s ok: %s", c.what, c.remark)
	default:
		return fmt.Sprintf("[+]%s ok", c.what)
	}
}

// checks looks at everything that an operator needs to do its work.
func checks(o Operator, stall time.Duration) []check {
	state, watching := o.State(), o.Watching()
	var all []check
	for _, w := range watching {
		all = append(all, ofWatch(w))
	}
	if asked, ok := o.(AdmissionOperator); ok {
		all = append(all, check{what: "admission", problem: asked.AdmissionProblem()})
	}
	return append(all, ofStart(state), ofQueue(state.Queue, stall), ofHandling(state))
}

func ofWatch(w reconcile.Watching) check {
	c := check{what: w.Resource}
	if w.Namespace != "" {
		c.what += " in " + w.Namespace
	}
	switch {
	case !w.Listed && w.Err != nil:
		c.problem = "not listed yet: " + explained(w.Err)
	case !w.Listed:
		c.problem = "not listed yet"
	case w.Err != nil:
		c.problem = "not watched now: " + explained(w.Err)
	}
	return c
}

func ofStart(state metrics.State) check {
	c := check{what: "start"}
	if !state.Ready {
		c.problem = "not all objects are known that were there at the beginning"
	}
	return c
}

func ofQueue(q metrics.Queue, stall time.Duration) check {
	c := check{what: "queue"}
	if q.Oldest > stall {
		c.problem = fmt.Sprintf("stands still: %d objects wait, the first of them for %s; %d of %d workers are busy",
			q.Depth, q.Oldest.Round(time.Second), q.Busy, q.Workers)
	}
	return c
}

func ofHandling(state metrics.State) check {
	c := check{what: "handling"}
	switch {
	case !state.Leading:
		c.remark = "this replica stands by"
	case state.Paused:
		c.remark = "paused, for another operator handles the objects"
	}
	return c
}

// ReadyCheck makes a check for the readiness of an operator: an error with what is wrong,
// one line each. It has the type of controller-runtime's healthz.Checker. The stall
// is how long an object may wait for a worker.
func ReadyCheck(o Operator, stall time.Duration) func(*http.Request) error {
	return func(*http.Request) error {
		var problems []error
		for _, c := range checks(o, stall) {
			if c.problem != "" {
				problems = append(problems, errors.New(c.what+" "+c.problem))
			}
		}
		return errors.Join(problems...)
	}
}

// readiness is the answer of the endpoint.
func readiness(o Operator, stall time.Duration) answer {
	status, verdict := http.StatusOK, "ready"
	var lines []string
	for _, c := range checks(o, stall) {
		if lines = append(lines, c.String()); c.problem != "" {
			status, verdict = http.StatusServiceUnavailable, "not ready"
		}
	}
	return text(status, strings.Join(append(lines, verdict), "\n"))
}
