package operator

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/pkg/settings"
)

// unelected is a manager that another process leads.
type unelected struct{ manager.Manager }

func (unelected) Elected() <-chan struct{} { return nil }

// sharing returns an operator with shards.
func sharing(t *testing.T) *Operator {
	t.Helper()
	s := settings.Settings{Name: "web.example.com"}
	s.Replicas.Shards = 16
	o, err := newOperator(Options{Settings: s, Logger: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	o.inManager = true
	return o
}

// Only the leader of a manager would handle objects. The others would wait for ever, and say nothing.
func TestShardsNeedAManagerWithoutElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := sharing(t).runIn(t.Context(), unelected{})
		const want = "an operator with settings.Replicas.Shards cannot be in a manager that elects a leader: only the leader would handle objects. Unset LeaderElection in the options"
		if err == nil || !strings.HasPrefix(err.Error(), want) || time.Since(began) != electionPatience {
			t.Errorf("got %v after %s", err, time.Since(began))
		}
	})
}

func TestAManagerThatStopsIsNoElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if err := sharing(t).runIn(ctx, unelected{}); err != nil {
			t.Errorf("got %v", err)
		}
	})
}

// Caches and controllers can be slow. A manager that elects no leader counts as elected afterwards.
func TestASlowManagerIsNoElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elected := make(chan struct{})
		time.AfterFunc(20*time.Second, func() { close(elected) })
		if err := refuseElection(t.Context(), elected); err != nil {
			t.Errorf("got %v", err)
		}
	})
}
