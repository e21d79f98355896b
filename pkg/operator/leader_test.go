package operator

import (
	"context"
	"errors"
	"testing"
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
