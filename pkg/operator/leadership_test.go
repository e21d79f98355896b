package operator

import (
	"context"
	"errors"
	"testing"
)

func TestATenureThatNobodyBegins(t *testing.T) {
	var tenure tenure
	if err := tenure.end(); err != nil {
		t.Errorf("got %v", err)
	}
	ctx, leave := tenure.begin(t.Context())
	if ctx.Err() == nil {
		t.Error("somebody leads after the end")
	}
	leave(nil)
}

func TestTheEndOfATenureWaitsForTheLeader(t *testing.T) {
	var tenure tenure
	ctx, leave := tenure.begin(t.Context())
	failed, stopped := errors.New("no"), false
	go func() {
		<-ctx.Done()
		stopped = true // a race, if nobody waits
		leave(failed)
	}()
	for range 2 {
		if err := tenure.end(); !errors.Is(err, failed) || !stopped {
			t.Errorf("got %v, %v", err, stopped)
		}
	}
}

func TestATenureEndsWithItsContext(t *testing.T) {
	var tenure tenure
	ctx, cancel := context.WithCancel(t.Context())
	leading, leave := tenure.begin(ctx)
	cancel()
	<-leading.Done()
	leave(nil)
	if err := tenure.end(); err != nil {
		t.Errorf("got %v", err)
	}
}
