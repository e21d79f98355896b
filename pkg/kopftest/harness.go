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
	options   options
	declare   func() *kopf.Registry
	server    *apiserver.Server
	client    client.WithWatch
	recording *recording
	running   *instance
	former    []*instance // killed ones, which may still end
	webhooks  webhooks
	latest    kopf.Settings // of the last start
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
// survive. A nil registry is kopf.DefaultRegistry.
//
// The operator stops when the test ends. Goroutines that remain then are an error. In a
// handler, do not use the network, processes, or locks that are held while waiting: time
// stands still until they are done.
func New(t *testing.T, declare func() *kopf.Registry, with ...Option) *Harness {
	t.Helper()
	requireBubble(t)
	h := &Harness{t: t, declare: declare, recording: &recording{}}
	for _, option := range with {
		option.apply(&h.options)
	}
	if h.options.trial != nil {
		h.options.trial.join(h)
	}
	server, err := apiserver.New(apiserver.Options{Webhooks: &h.webhooks})
	if err != nil {
		t.Fatal(err)
	}
	h.server = server
	config := (&APIServer{server: server}).Config()
	if h.client, err = client.NewWithWatch(config, client.Options{Scheme: h.options.scheme}); err != nil {
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
	if h.running != nil {
		h.Stop()
	}
	for _, one := range h.former {
		one.wait(h.t)
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
	h.wait(0)
	if h.options.trial != nil {
		h.options.trial.settled()
	}
}

// wait lets time pass, and waits until nothing runs. An operator that a sweep has killed is
// started again at once.
func (h *Harness) wait(d time.Duration) {
	h.t.Helper()
	passed := time.After(d)
	for waiting := d > 0; waiting; {
		select {
		case <-passed:
			waiting = false
		case <-h.crashed():
			h.replaceCrashed()
		}
	}
	synctest.Wait()
	for h.isCrashed() {
		h.replaceCrashed()
		synctest.Wait()
	}
	h.checkRunning()
}

// Advance lets time pass, and waits as Settle does.
func (h *Harness) Advance(d time.Duration) {
	h.t.Helper()
	h.wait(d)
	h.Settle()
}

// checkRunning ends the test if the operator has ended by itself.
func (h *Harness) checkRunning() {
	h.t.Helper()
	if h.running == nil {
		return
	}
	select {
	case <-h.running.done:
		err := h.running.err
		h.running = nil
		h.t.Fatalf("the operator has ended: %v", err)
	default:
	}
}

// Start starts the operator after Stop. It returns when the operator knows all objects.
func (h *Harness) Start() {
	h.t.Helper()
	if h.running != nil {
		h.t.Fatal("the operator is running already")
	}
	h.begin()
	h.Settle()
}

// begin starts the operator, again if a sweep kills it meanwhile.
func (h *Harness) begin() {
	h.t.Helper()
	h.running = h.newInstance()
	select {
	case <-h.running.operator.Ready():
	case <-h.crashed():
	case <-h.running.done:
	case <-time.After(startTimeout):
		h.t.Fatal("the operator is not ready after an hour of virtual time")
	}
	if h.isCrashed() {
		h.replaceCrashed()
		return
	}
	h.checkRunning()
}

// crashed returns a channel that is closed when the running operator is killed.
func (h *Harness) crashed() <-chan struct{} {
	if h.running == nil {
		return nil
	}
	return h.running.link.alive.Done()
}

func (h *Harness) isCrashed() bool { return h.running != nil && h.running.link.isCut() }

// replaceCrashed starts the operator after it was killed.
func (h *Harness) replaceCrashed() {
	h.t.Helper()
	h.former = append(h.former, h.running)
	h.begin()
}

// startTimeout is in virtual time, so that it costs nothing.
const startTimeout = time.Hour

// Stop stops the operator as Kubernetes does: handlers can finish, cleanup handlers are
// called, and outcomes are stored. It takes as much virtual time as that.
func (h *Harness) Stop() {
	h.t.Helper()
	if h.running == nil {
		h.t.Fatal("the operator is not running")
	}
	stopped := h.running
	h.running = nil
	stopped.stop()
	stopped.wait(h.t)
}

// Restart stops the operator and starts it again.
func (h *Harness) Restart() {
	h.t.Helper()
	h.Stop()
	h.Start()
}

// Crash kills the operator, as a power failure does, and starts it again: nothing reaches the
// API server any more, not even what a handler does next. As goroutines cannot be killed, the
// contexts of the handlers are canceled; their code runs on if it ignores that.
func (h *Harness) Crash() {
	h.t.Helper()
	if h.running == nil {
		h.t.Fatal("the operator is not running")
	}
	h.running.kill()
	h.replaceCrashed()
	h.Settle()
}

// Operator returns the running operator.
func (h *Harness) Operator() *kopf.Operator { return h.running.operator }

// APIServer returns the server, to break watches, and to connect clients.
func (h *Harness) APIServer() *APIServer { return &APIServer{server: h.server} }

// require ends the test with what was impossible.
func require(t *testing.T, action string, object client.Object, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s %s: %v", action, nameOf(object), err)
	}
}

func nameOf(object client.Object) string {
	return fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(object))
}
