package operator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/pkg/reconcile"
)

func TestNoLeadershipBeginsAfterTheEnd(t *testing.T) {
	var leadership leadership
	if err := leadership.end(); err != nil {
		t.Errorf("got %v", err)
	}
	ctx, resign := leadership.begin(t.Context())
	if ctx.Err() == nil {
		t.Error("a leadership has begun")
	}
	resign(nil)
}

func TestEndOfALeadershipWaitsForTheLeader(t *testing.T) {
	var leadership leadership
	ctx, resign := leadership.begin(t.Context())
	failed, stopped := errors.New("no"), false
	go func() {
		<-ctx.Done()
		stopped = true // a data race unless end waits
		resign(failed)
	}()
	for range 2 {
		if err := leadership.end(); !errors.Is(err, failed) || !stopped {
			t.Errorf("got %v, %v", err, stopped)
		}
	}
}

func TestLeadershipEndsWithItsContext(t *testing.T) {
	var leadership leadership
	ctx, cancel := context.WithCancel(t.Context())
	leading, resign := leadership.begin(ctx)
	cancel()
	<-leading.Done()
	resign(nil)
	if err := leadership.end(); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestALeaseIsLostIfTheManagerEndsUnasked(t *testing.T) {
	running := t.Context()
	ended, cancel := context.WithCancel(running)
	cancel()
	tests := map[string]struct {
		manager, requested context.Context
		stopped            bool
		want               bool
	}{
		"the manager has ended the leadership":         {ended, running, false, true},
		"the operator was asked to stop":               {ended, ended, false, false},
		"the work has ended by itself":                 {running, running, false, false},
		"another manager has ended the leadership":     {ended, nil, false, true},
		"another manager has stopped the replica, too": {ended, nil, true, false},
		"another manager runs":                         {running, nil, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := isLeaseLost(test.manager, test.requested, test.stopped); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// When the work ends, the manager of another program may not have said yet that the lease is lost.
func TestTheLeaderWaitsForTheNewsThatItsLeaseIsLost(t *testing.T) {
	const never = time.Hour
	tests := map[string]struct {
		foreign  bool          // the manager is that of another program
		elects   bool          // the operator has a leader election
		asked    bool          // the operator was asked to stop
		aborted  bool          // the engine has learned of the loss
		leadsFor time.Duration // after which the manager ends the leadership
		stopped  bool          // run has returned before
		want     bool
		wait     time.Duration
	}{
		"asked to stop":                            {elects: true, asked: true, leadsFor: never, want: false},
		"not asked to stop":                        {elects: true, leadsFor: never, want: true},
		"not asked, without an election":           {leadsFor: never, want: false},
		"asked to stop, but aborted":               {elects: true, asked: true, aborted: true, leadsFor: never, want: true},
		"aborted, without an election":             {aborted: true, leadsFor: never, want: true},
		"another manager has ended the leadership": {foreign: true, want: true},
		"another manager ends it soon":             {foreign: true, leadsFor: 300 * time.Millisecond, want: true, wait: 300 * time.Millisecond},
		"another manager ends it late":             {foreign: true, leadsFor: lossDelay + time.Millisecond, want: false, wait: lossDelay},
		"another manager does not end it":          {foreign: true, leadsFor: never, want: false, wait: lossDelay},
		"another manager ends it after a stop":     {foreign: true, leadsFor: 300 * time.Millisecond, stopped: true, want: false, wait: 300 * time.Millisecond},
		"another manager does not, but aborted":    {foreign: true, aborted: true, leadsFor: never, want: true, wait: lossDelay},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				manager, cancel := context.WithTimeout(t.Context(), test.leadsFor)
				defer cancel()
				r := &replica{engine: reconcile.New(reconcile.Config{})}
				r.settings.Replicas.LeaderElection = test.elects
				r.stopped.Store(test.stopped)
				if !test.foreign {
					requested, ask := context.WithCancel(t.Context())
					defer ask()
					if r.requested = requested; test.asked {
						ask()
					}
				}
				if test.aborted {
					r.engine.Abort(errLeadershipLost)
				}
				began := time.Now()
				if got, took := r.waitLost(manager), time.Since(began); got != test.want || took != test.wait {
					t.Errorf("got %t after %s, want %t after %s", got, took, test.want, test.wait)
				}
			})
		})
	}
}
