package kills

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// kill is where the first operator of a life dies.
type kill struct {
	number int // of the write, from 1; 0: it does not die
	after  bool
}

func (k kill) String() string {
	when := "before"
	if k.after {
		when = "after"
	}
	return fmt.Sprintf("%s write %d", when, k.number)
}

// process is one operator.
type process struct {
	dead     atomic.Bool
	writes   sync.WaitGroup // those that are sent
	operator *operators.Operator
}

// life has the operators that live it, one after another, and all that they have written.
type life struct {
	*gomega.WithT
	t         *testing.T
	kill      kill
	namespace string
	declare   func(*kopf.Registry)
	requests  *testenv.CountingTransport // of operators that are alive
	logs      *operators.Journal
	process   *process
	// afterDeath is called before the successor of an operator that was killed starts.
	afterDeath func()

	mu        sync.Mutex
	begun     int // writes
	committed []write
	watching  func(write) // is told each committed write, before the operator gets the answer
}

func newLife(t *testing.T, k kill, declare func(*kopf.Registry)) *life {
	t.Helper()
	return &life{
		WithT: gomega.NewWithT(t), t: t, kill: k, namespace: cluster.Namespace(t), declare: declare,
		requests: &testenv.CountingTransport{}, logs: &operators.Journal{}, afterDeath: func() {}, watching: func(write) {},
	}
}

// start starts an operator, which dies at its time.
func (l *life) start() {
	l.t.Helper()
	p := &process{}
	config := cluster.Config()
	config.WarningHandler = rest.NoWarnings{}
	config.Wrap(l.requests.Wrap)
	config.Wrap(l.through(p))
	registry := kopf.NewRegistry()
	l.declare(registry)
	p.operator = operators.Start(l.t, config, l.namespace, registry, func(o *kopf.Options) {
		o.Logger = l.logs.Logger()
		o.Settings.Name = name
		o.Settings.Execution.CheckpointInterval = time.Hour // the writes must not depend on the load
		o.Settings.Execution.GracePeriod = time.Second
		o.Settings.Queueing.ErrorDelays = []time.Duration{20 * time.Millisecond}
		o.Settings.Networking.QPS = -1
		o.Settings.Posting.Disabled = true
	})
	l.process = p
}

// name is the field manager of the operators.
const name = "shop-operator"

// restart replaces the operator by another one, as an upgrade does.
func (l *life) restart() {
	l.t.Helper()
	l.process.operator.Stop()
	l.start()
}

// revive starts the successor of an operator that was killed. What is left of that has no effect.
func (l *life) revive() {
	l.t.Helper()
	if l.process.dead.Load() {
		go l.process.operator.Stop()
		l.process.writes.Wait() // what is sent arrives
		l.afterDeath()
		l.start()
	}
}

// eventually waits for a condition, and starts a successor when the operator dies.
func (l *life) eventually(why string, condition func(g gomega.Gomega)) {
	l.t.Helper()
	l.Eventually(func(g gomega.Gomega) {
		l.revive()
		condition(g)
	}).Should(gomega.Succeed(), func() string { return why + "\n" + l.story() })
}

// rest waits until the operator has nothing left to do.
func (l *life) rest() {
	l.t.Helper()
	atRest := cluster.AtRest(l.requests)
	l.Eventually(func() (bool, error) {
		l.revive()
		return atRest()
	}).Should(gomega.BeTrue(), l.story)
}

// done returns the writes that the API server has committed so far.
func (l *life) done() []write {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.committed)
}

// count returns the number of writes so far, also of those that were not sent.
func (l *life) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.begun
}

// story is what has happened, for failures.
func (l *life) story() string {
	text := "The kill: " + l.kill.String() + "\n"
	for _, w := range l.done() {
		text += w.String() + "\n"
	}
	return text + l.logs.String()
}

// sweep lives a life for each kill at the writes of the life without one, all at the same time.
func sweep(t *testing.T, live func(t *testing.T, k kill) (writes int)) {
	t.Helper()
	writes := live(t, kill{})
	if t.Failed() {
		return
	}
	for number := range writes {
		for _, after := range []bool{false, true} {
			k := kill{number + 1, after}
			t.Run(k.String(), func(t *testing.T) {
				t.Parallel()
				if again := live(t, k); again < k.number {
					t.Errorf("there are only %d writes instead of %d: their number depends on chance", again, writes)
				}
			})
		}
	}
}
