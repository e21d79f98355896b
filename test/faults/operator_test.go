package faults

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
)

// The errors of a broken network.
var (
	errDead = errors.New("the operator is dead")
	errLost = errors.New("the connection is broken")
)

// operator is one process from the point of view of the API server and the handlers: when it is
// dead, nothing that it does has an effect.
type operator struct {
	name    string
	run     *run
	process interface{ Stop() }
	dead    atomic.Bool
	watches *gate
	// failReads is the number of reads of the object that fail next.
	failReads atomic.Int32
}

// start runs an operator with the handlers of the scenario.
func (r *run) start() {
	o := &operator{name: r.nextName(), run: r, watches: newGate()}
	if r.stale != nil {
		o.watches.shut() // a lagging server lags with everything
	}
	r.operators = append(r.operators, o)
	config := cluster.Config()
	config.Wrap(o.wrap)
	config.WarningHandler = rest.NoWarnings{}
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
	s.Execution.Workers = 2
	s.Execution.CheckpointInterval = o.run.scenario.checkpoint
	s.Execution.GracePeriod = o.run.scenario.grace
	s.Queueing.ErrorDelays = []time.Duration{20 * time.Millisecond}
	s.Networking.QPS = -1
	s.Posting.Disabled = true
	if f := faults[o.run.plan.fault]; f.impatient {
		s.Persistence.ConsistencyTimeout = 50 * time.Millisecond
	}
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
func (o *operator) handle(id string, fn kopf.ChangeFunc) kopf.ChangeFunc {
	return func(ctx context.Context, c *kopf.Change) error {
		if !o.run.history.called(o, id, c) {
			return errDead
		}
		return fn(ctx, c)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(sent *http.Request) (*http.Response, error) { return f(sent) }

// wrap inserts the operator's network between it and the API server.
func (o *operator) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(sent *http.Request) (*http.Response, error) {
		if o.dead.Load() {
			return nil, errDead
		}
		answer, err := o.route(sent, next)
		if o.dead.Load() && err == nil {
			_ = answer.Body.Close()
			return nil, errDead
		}
		return answer, err
	})
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

// write is one attempt to write to the object.
type write struct {
	operator *operator
	next     http.RoundTripper
	request  *http.Request
	number   int
}

// commit sends the write to the API server, and records the response in the history.
func (w *write) commit() (*http.Response, error) {
	answer, err := w.next.RoundTrip(w.request)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(content))
	if !w.dry() {
		w.operator.run.history.answered(w, answer.StatusCode, content)
	}
	return answer, nil
}

// later returns the same write, to be sent after the operator has given up on it.
func (w *write) later() *write {
	copied := *w
	copied.request = w.request.Clone(context.Background())
	copied.request.Body = io.NopCloser(bytes.NewReader(w.body()))
	return &copied
}

func (w *write) body() []byte {
	reader, err := w.request.GetBody()
	if err != nil {
		return nil
	}
	content, _ := io.ReadAll(reader)
	return content
}

// dry reports whether the write is a dry run.
func (w *write) dry() bool { return w.request.URL.Query().Has("dryRun") }

func (w *write) target() string {
	target := "main"
	if strings.HasSuffix(w.request.URL.Path, "/status") {
		target = "status"
	}
	if w.dry() {
		target += ", to try"
	}
	return target
}
