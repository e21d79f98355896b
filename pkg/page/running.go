package page

import (
	"fmt"
	"time"

	"github.com/kopf-go/kopf/pkg/internal/plural"
	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/reconcile"
)

// rates measure how much an operator does, by what it has done at different times.
type rates struct{ samples []sample }

// sample is what an operator has done until some time.
type sample struct {
	at     time.Time
	totals metrics.Totals
}

// The time for which rates are measured.
const (
	longestRate  = 5 * time.Minute
	shortestRate = 20 * time.Second
)

// rate is how much an operator has done in some time.
type rate struct {
	For time.Duration
	// Calls, Writes, and Errors are per minute.
	Calls, Writes, Errors float64
}

// add returns the rate until now: of the last minutes, or since the start of the operator if the page was closed for as long.
func (r *rates) add(at time.Time, now metrics.Totals) rate {
	if last := len(r.samples) - 1; last >= 0 && !r.samples[last].totals.Since.Equal(now.Since) { // it has started again
		r.samples = nil
	}
	r.samples = append(r.samples, sample{at, now})
	for len(r.samples) > 1 && at.Sub(r.samples[0].at) > longestRate {
		r.samples = r.samples[1:]
	}
	from := r.samples[0]
	if at.Sub(from.at) < shortestRate {
		from = sample{at: now.Since}
	}
	minutes := at.Sub(from.at).Minutes()
	if now.Since.IsZero() || minutes <= 0 {
		return rate{}
	}
	perMinute := func(before, after int64) float64 { return float64(after-before) / minutes }
	return rate{
		For: at.Sub(from.at), Calls: perMinute(from.totals.Calls, now.Calls),
		Writes: perMinute(from.totals.Writes, now.Writes), Errors: perMinute(from.totals.Errors, now.Errors),
	}
}

// String says the rates in a sentence.
func (r rate) String() string {
	return fmt.Sprintf("In the last %s: %s calls of handlers, %s writes, and %s errors per minute.", roughly(r.For), rounded(r.Calls), rounded(r.Writes), rounded(r.Errors))
}

// rounded returns a number with as many digits as matter.
func rounded(x float64) string {
	if x > 0 && x < 10 {
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

// askForMore says how to see what only a running operator knows.
const askForMore = "What only a running operator knows is not shown: how much it does, which handlers run or wait, its watches, its rollouts, and the permissions that it lacks. Ask it by --running and --token-file."

// operatorLines says what the operator is doing, in sentences.
func (p *Page) operatorLines(f operatorFacts) []string {
	now := f.Now
	switch {
	case p.options.Running == nil:
		return nil
	case now == nil:
		return []string{fmt.Sprintf("The running operator does not say what it is doing: %v.", f.NowErr)}
	}
	var lines []string
	switch {
	case !now.Leading:
		lines = append(lines, "This replica is on standby: it handles nothing, and does not know what the leader does.")
	case now.Paused:
		lines = append(lines, "The operator is paused by another one.")
	}
	if !now.Ready {
		lines = append(lines, "The operator has not seen all objects yet. Until then, the filters of handlers can miss something in indices.")
	}
	if now.Replica != "" {
		lines = append(lines, fmt.Sprintf("This is about the replica %s: other replicas handle other shards.", now.Replica))
	}
	lines = append(lines, fmt.Sprintf("%s running, %s for a slot, and %s for a worker.",
		plural.Of(now.Running, "handler is", "handlers are"), plural.Of(now.Waiting, "waits", "wait"), plural.Of(now.Queued, "object waits", "objects wait")))
	if now.Operator == nil { // another version of the library
		return lines
	}
	if f.Rates.For > 0 {
		lines = append(lines, f.Rates.String())
	}
	totals := now.Operator.Totals
	if !totals.Since.IsZero() {
		lines = append(lines, fmt.Sprintf("Since its start %s: %s of handlers, of which %d failed for good and %d were repeated; %s; %s.", ago(totals.Since),
			plural.Of(int(totals.Calls), "call", "calls"), totals.Failed, totals.Retried, plural.Of(int(totals.Writes), "write", "writes"), plural.Of(int(totals.Errors), "error", "errors")))
	}
	for _, b := range now.Operator.Background {
		if b.Waiting+b.Running+b.Abandoned > 0 {
			lines = append(lines, fmt.Sprintf("Of the %ss, %d wait, %d run, and %d were stopped and have not returned.", b.Kind, b.Waiting, b.Running, b.Abandoned))
		}
	}
	return lines
}

// callView is a call of a handler for an object.
type callView struct {
	Handler, Object, Link string
	Since                 time.Time // zero if it waits for a slot
}

// calls returns the calls for objects of resources, with links to these.
func calls(of []reconcile.ObjectCall, tables []*table) (views []callView) {
	for _, c := range of {
		view := callView{Handler: c.Handler, Object: c.Resource + " " + c.Name, Since: c.Since}
		for _, t := range tables {
			if t.of.String() == c.Resource {
				at := target{t.of.Name, c.Namespace, c.Name}
				view.Object = at.Resource + "/" + at.Name
				view.Link = at.link()
			}
		}
		if c.Namespace != "" {
			view.Object += " in " + c.Namespace
		}
		views = append(views, view)
	}
	return views
}

// rolloutView is a rollout with how far it is.
type rolloutView struct {
	metrics.Rollout

	Total, Percent int
}

func rollouts(all []metrics.Rollout) (views []rolloutView) {
	for _, r := range all {
		total := r.Waiting + r.Running + r.Done + r.Failed
		view := rolloutView{Rollout: r, Total: total, Percent: 100}
		if total > 0 {
			view.Percent = 100 * r.Done / total
		}
		views = append(views, view)
	}
	return views
}
