package health

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kopf-go/kopf/pkg/internal/plural"
	"github.com/kopf-go/kopf/pkg/metrics"
)

// checkResult is the result of one readiness check.
type checkResult struct {
	name    string
	problem string // empty: the check passed
	note    string // additional information if it passed
}

// String formats the result as the API server does in its own endpoint.
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

// runChecks checks everything that an operator needs to do its work.
func runChecks(o Operator, maxQueueAge time.Duration) []checkResult {
	state := o.State()
	var all []checkResult

	// The watches. Their names can be parts of a path. The name of a resource has a dot.
	for _, w := range o.WatchStatuses() {
		c := checkResult{name: w.Resource}
		if w.Children {
			c.name = "children/" + w.Resource
		}
		if w.Namespace != "" {
			c.name += "/" + w.Namespace
		}
		switch {
		case !w.Listed && w.Err != nil:
			c.problem = "not listed yet: " + describeError(w.Err)
		case !w.Listed:
			c.problem = "not listed yet"
		case w.Err != nil:
			c.problem = "not watched now: " + describeError(w.Err)
		}
		all = append(all, c)
	}

	if a, ok := o.(AdmissionOperator); ok {
		all = append(all, checkResult{name: "admission", problem: a.AdmissionProblem()})
	}

	start := checkResult{name: "start"}
	if !state.Ready {
		start.problem = "not all existing objects are listed yet"
	}

	queue := checkResult{name: "queue"}
	if q := state.Queue; q.Oldest > maxQueueAge {
		queue.problem = fmt.Sprintf("stalled: %s waiting, the oldest for %s; %d of %s busy", plural.Of(q.Depth, "object is", "objects are"),
			q.Oldest.Round(time.Second), q.Busy, plural.Of(q.Workers, "worker is", "workers are"))
	}

	handling := checkResult{name: "handling"}
	if s := state.Shards; s != nil {
		all = append(all, checkShards(*s))
		handling.note = "this replica handles no shards"
		if !s.Held.IsEmpty() {
			handling.note = "this replica handles the shards " + s.Held.String()
		}
	}
	switch {
	case !state.Leading:
		handling.note = "this replica is on standby"
	case state.Paused:
		handling.note = "paused: another operator handles the objects"
	}
	return append(all, start, queue, handling)
}

// checkShards checks whether a replica can take shards. One that waits for a leader is ready, or else no rolling update could
// replace the leader.
func checkShards(s metrics.Shards) checkResult {
	c := checkResult{name: "shards"}
	switch {
	case s.Joined:
		c.note = fmt.Sprintf("%s of %d", plural.Of(s.Held.Len(), "shard", "shards"), s.Number)
	case s.Leader != "":
		c.note = "this replica waits until one with leader election has stopped"
	default:
		c.problem = "this replica takes no part: it cannot read or write the leases of the shards, or has just started"
	}
	return c
}

// describeError describes the kind of an API error. The message of the error may quote
// the request, and any client that reaches the port can read the response.
func describeError(err error) string {
	var network net.Error
	switch {
	case apierrors.IsForbidden(err):
		return "the operator is not permitted to list and watch it"
	case apierrors.IsUnauthorized(err):
		return "the API server does not accept the operator's credentials"
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		return "the API server does not serve it"
	case apierrors.IsTooManyRequests(err), apierrors.IsServiceUnavailable(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err):
		return "the API server is overloaded or unavailable"
	case errors.As(err, &network), errors.Is(err, context.DeadlineExceeded):
		return "the API server cannot be reached"
	default:
		return "see the log for the reason"
	}
}
