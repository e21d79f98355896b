package kopftest

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver"
)

// Harness runs an operator against an API server in memory, in virtual time. Its methods end
// the test if something is impossible, so that tests contain no error handling.
//
// Use it in the goroutine of the test.
type Harness struct {
	t         *testing.T
	client    client.WithWatch
	recording *recording
	runs      *runs
}

// New starts an operator. Call it in a bubble of virtual time:
//
//	synctest.Test(t, func(t *testing.T) {
//		h := kopftest.New(t, declare, kopftest.CRDs("../config/crd"))
//		h.Create(object)
//		h.Settle()
//		...
//	})
//
// The function declares the handlers. It is called for every start of the operator, so that
// a restart forgets what is in memory: closures, memos, and indices. Package variables
// survive. A nil registry is an error, as for kopf.NewOperator.
//
// The operator stops when the test ends. Goroutines that remain then are an error. In a
// handler, do not use the network, processes, or locks that are held while waiting: time
// stands still until they are done.
func New(t *testing.T, declare func() *kopf.Registry, with ...Option) *Harness {
	t.Helper()
	requireBubble(t)
	silenceLibraries() // the operator has a logger, and time may have passed
	h := &Harness{t: t, recording: &recording{}}
	h.runs = &runs{t: t, declare: declare, recording: h.recording}
	for _, option := range with {
		option.apply(&h.runs.options)
	}
	if trial := h.runs.options.trial; trial != nil {
		if trial.harness != nil {
			t.Fatal("a scenario of kopftest.Sweep can call kopftest.New only once")
		}
		trial.harness = h
	}
	server, err := apiserver.New(apiserver.Options{Webhooks: &h.runs.webhooks})
	if err != nil {
		t.Fatal(err)
	}
	h.runs.server = server
	config := (&APIServer{server: server}).Config()
	h.client, err = client.NewWithWatch(config, client.Options{Scheme: h.runs.options.scheme})
	if err != nil {
		t.Fatal(err)
	}
	h.install()
	t.Cleanup(h.close)
	h.Start()
	return h
}

// requireBubble ends a test outside of virtual time, where it would wait for real.
func requireBubble(t *testing.T) {
	t.Helper()
	defer func() {
		if recover() != nil {
			t.Fatal("kopftest.New needs virtual time: call it in the function of synctest.Test(t, func(t *testing.T) {...}). " +
				"In real time, use kopftest.NewAPIServer or kopftest.Cluster with kopftest.Run")
		}
	}()
	synctest.Wait()
}

// close stops everything at the end of the test.
func (h *Harness) close() {
	h.t.Helper()
	if h.runs.current != nil {
		h.runs.stop()
	}
	for _, killed := range h.runs.former {
		killed.wait(h.t)
	}
	if h.t.Failed() {
		for _, line := range h.Logs() {
			h.t.Log(line)
		}
	}
	reportLeaks(h.t)
}

// Settle waits until nothing runs except what waits for time: all events are delivered, and
// all handlers have returned, sleep, or wait for their context. Time does not pass.
func (h *Harness) Settle() {
	h.t.Helper()
	h.runs.wait(0)
	if h.runs.options.trial != nil {
		h.runs.options.trial.settled()
	}
}

// Advance lets time pass, and waits as Settle does.
func (h *Harness) Advance(d time.Duration) {
	h.t.Helper()
	if trial := h.runs.options.trial; trial != nil {
		d = trial.untilSameTime(d)
	}
	h.runs.wait(d)
	h.Settle()
}

// Start starts the operator after Stop. It returns when the operator knows all objects.
func (h *Harness) Start() {
	h.t.Helper()
	if h.runs.current != nil {
		h.t.Fatal("the operator is running already")
	}
	h.runs.begin()
	h.Settle()
}

// Stop stops the operator as Kubernetes does: handlers can finish, cleanup handlers are
// called, and outcomes are stored. It takes as much virtual time as that.
func (h *Harness) Stop() {
	h.t.Helper()
	h.requireRunning()
	h.runs.stop()
}

// Restart stops the operator and starts it again.
func (h *Harness) Restart() {
	h.t.Helper()
	h.Stop()
	h.Start()
}

// Crash kills the operator, as a power failure does, and starts it again: nothing reaches the
// API server anymore, not even what a handler does next. As goroutines cannot be killed, the
// contexts of the handlers are canceled; their code runs on if it ignores that.
func (h *Harness) Crash() {
	h.t.Helper()
	h.requireRunning()
	h.runs.current.kill()
	h.runs.replaceCrashed()
	h.Settle()
}

func (h *Harness) requireRunning() {
	h.t.Helper()
	if h.runs.current == nil {
		h.t.Fatal("the operator is not running")
	}
}

// Operator returns the running operator.
func (h *Harness) Operator() *kopf.Operator { return h.runs.current.operator }

// APIServer returns the server, to break watches, and to connect clients.
func (h *Harness) APIServer() *APIServer { return &APIServer{server: h.runs.server} }

// require ends the test with what was impossible.
func require(t *testing.T, action string, object client.Object, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s %s: %v", action, fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(object)), err)
	}
}
