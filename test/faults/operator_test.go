package faults

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
)

// operator is one process from the point of view of the API server and the handlers: when it is
// dead, nothing that it does has an effect.
type operator struct {
	link
	run     *run
	process interface{ Stop() }
	// failReads is the number of reads of the object that fail next.
	failReads atomic.Int32
}

// start runs an operator with the handlers of the scenario.
func (r *run) start() {
	o := &operator{link: newLink(r.nextName(), cluster), run: r}
	if r.stale != nil {
		o.watches.shut() // a lagging server lags with everything
	}
	r.operators = append(r.operators, o)
	config := o.config(o.route)
	registry := kopf.NewRegistry()
	r.scenario.declare(declarations{o, registry, kopf.Resource("kopf.dev", "v1", r.scenario.resource())})
	r.history.note("%s starts", o.name)
	if faults[r.plan.fault].standby {
		options := kopf.Options{}
		o.adjust(&options)
		options.Settings.Scope.Namespaces = []string{r.object.GetNamespace()}
		o.process = r.startElected(config, registry, options)
		return
	}
	o.process = operators.Start(r.t, config, r.object.GetNamespace(), registry, o.adjust)
}

// adjust shortens all delays that are meant for real clusters.
func (o *operator) adjust(options *kopf.Options) {
	s := &options.Settings
	hurry(s)
	s.Execution.CheckpointInterval = o.run.scenario.checkpoint
	s.Execution.GracePeriod = o.run.scenario.grace
	if o.run.scenario.named {
		s.Name = "faults"
	}
	if f := faults[o.run.plan.fault]; f.impatient {
		s.Persistence.ConsistencyTimeout = 50 * time.Millisecond
	}
}

// hurry shortens the delays of the operator itself.
func hurry(s *kopf.Settings) {
	s.Execution.Workers = 2
	s.Queueing.ErrorDelays = []time.Duration{20 * time.Millisecond}
	s.Networking.QPS = -1
	s.Posting.Disabled = true
}

// die stops all effects of the operator.
func (o *operator) die() {
	o.dead.Store(true)
	o.watches.open()
	o.run.history.note("%s is dead", o.name)
}

// bury stops the remains of dead operators.
func (r *run) bury() {
	r.operators = slices.DeleteFunc(r.operators, func(o *operator) bool {
		dead := o.dead.Load()
		if dead {
			go o.process.Stop()
		}
		return dead
	})
}

// handle records the calls of a handler in the history.
func (o *operator) handle(id string, fn func(context.Context, *kopf.Change) error) func(context.Context, *kopf.Change) error {
	return func(ctx context.Context, c *kopf.Change) error {
		if !o.run.history.called(o, id, c) {
			return errDead
		}
		return fn(ctx, c)
	}
}

func (o *operator) route(sent *http.Request, next http.RoundTripper) (*http.Response, error) {
	path, plural := sent.URL.Path, "/"+o.run.scenario.resource()
	switch query := sent.URL.Query(); {
	case sent.Method == http.MethodPatch && strings.Contains(path, plural+"/"):
		return o.run.write(&write{operator: o, next: next, request: sent})
	case query.Get("watch") == "true" && strings.HasSuffix(path, plural):
		return o.watches.watch(sent, next)
	case strings.HasSuffix(path, plural):
		return o.run.list(sent, next)
	case strings.Contains(path, plural+"/") && o.failReads.Add(-1) >= 0:
		o.run.history.note("a read of %s fails", o.name)
		return nil, errLost
	}
	return next.RoundTrip(sent)
}
