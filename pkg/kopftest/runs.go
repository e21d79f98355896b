package kopftest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver"
	"github.com/kopf-go/kopf/pkg/kopftest/internal/watchdog"
)

// runs are the runs of the operator of one test. At most one of them lives.
type runs struct {
	t         *testing.T
	options   options
	declare   func() *kopf.Registry
	server    *apiserver.Server
	recording *recording
	current   *instance
	former    []*instance // killed ones, which may still end
	webhooks  webhooks
	latest    kopf.Settings // of the last start
	declared  []string      // the ids of the handlers of the last start
}

// begin starts the operator, again if a sweep kills it meanwhile.
func (r *runs) begin() {
	r.t.Helper()
	defer watchdog.Default.Begin()()
	r.current = r.newInstance()
	select {
	case <-r.current.operator.Ready():
	case <-r.crashed():
	case <-r.current.done:
	case <-time.After(startTimeout):
		r.t.Fatal("the operator is not ready after an hour of virtual time")
	}
	if r.isCrashed() {
		r.replaceCrashed()
		return
	}
	r.check()
}

// startTimeout is in virtual time, so that it costs nothing.
const startTimeout = time.Hour

// wait lets time pass, and waits until nothing runs. An operator that a sweep has killed is
// started again at once.
func (r *runs) wait(d time.Duration) {
	r.t.Helper()
	defer watchdog.Default.Begin()()
	r.recording.handOver()
	passed := time.After(d)
	for waiting := d > 0; waiting; {
		select {
		case <-passed:
			waiting = false
		case <-r.crashed():
			r.replaceCrashed()
		}
	}
	synctest.Wait()
	for r.isCrashed() {
		r.replaceCrashed()
		synctest.Wait()
	}
	r.check()
}

// crashed returns a channel that is closed when the running operator is killed.
func (r *runs) crashed() <-chan struct{} {
	if r.current == nil {
		return nil
	}
	return r.current.link.alive.Done()
}

func (r *runs) isCrashed() bool { return r.current != nil && r.current.link.isCut() }

// replaceCrashed starts the operator after it was killed.
func (r *runs) replaceCrashed() {
	r.t.Helper()
	r.former = append(r.former, r.current)
	r.begin()
}

// check ends the test if the operator has ended by itself.
func (r *runs) check() {
	r.t.Helper()
	if r.current == nil {
		return
	}
	select {
	case <-r.current.done:
		err := r.current.err
		r.current = nil
		r.t.Fatalf("the operator has ended: %v", err)
	default:
	}
}

// stop stops the operator.
func (r *runs) stop() {
	r.t.Helper()
	stopped := r.current
	r.current = nil
	r.recording.handOver()
	stopped.stop()
	stopped.wait(r.t)
}
