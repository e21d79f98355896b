package health

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// ReadyCheck returns a readiness check of an operator, with the type of
// controller-runtime's healthz.Checker. Its error has one line for each problem. An
// object that waits for a worker for longer than maxQueueAge is a problem.
func ReadyCheck(o Operator, maxQueueAge time.Duration) func(*http.Request) error {
	return func(*http.Request) error {
		var problems []error
		for _, c := range runChecks(o, maxQueueAge) {
			if c.problem != "" {
				problems = append(problems, errors.New(c.name+" "+c.problem))
			}
		}
		return errors.Join(problems...)
	}
}

// readinessResponse lists all results. As with the API server's endpoint, checks can
// be excluded by name; the list is complete with or without ?verbose.
func readinessResponse(results []checkResult, excluded []string) response {
	status := http.StatusOK
	verdict := "ready"
	var lines []string
	for _, c := range results {
		if i := slices.Index(excluded, c.name); i >= 0 {
			lines = append(lines, "[+]"+c.name+" excluded: ok")
			excluded = slices.DeleteFunc(slices.Clone(excluded), func(name string) bool { return name == c.name })
			continue
		}
		lines = append(lines, c.String())
		if c.problem != "" {
			status = http.StatusServiceUnavailable
			verdict = "not ready"
		}
	}
	if len(excluded) > 0 {
		lines = append(lines, fmt.Sprintf("warn: some health checks cannot be excluded: no matches for %q", excluded))
	}
	return textResponse(status, strings.Join(append(lines, verdict), "\n"))
}

// checkResponse returns the result of the check with the name.
func checkResponse(results []checkResult, name string) response {
	var names []string
	for _, c := range results {
		switch {
		case c.name != name:
			names = append(names, c.name)
		case c.problem != "":
			return textResponse(http.StatusServiceUnavailable, c.String())
		default:
			return textResponse(http.StatusOK, c.String())
		}
	}
	return textResponse(http.StatusNotFound, fmt.Sprintf("there is no check %q; the checks are: %s", name, strings.Join(names, ", ")))
}
