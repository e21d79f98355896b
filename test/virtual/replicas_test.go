package virtual

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
	"github.com/kopf-go/kopf/test/testenv"
)

// replica is one of two processes of an operator.
type replica struct {
	isCut  atomic.Bool  // nothing reaches the API server
	wasCut atomic.Int64 // when that began last, in nanoseconds
	stop   func()
	ended  chan struct{}
}

// connect returns the connection of the replica.
func (r *replica) connect(next http.RoundTripper) http.RoundTripper {
	return testenv.RoundTripper(func(request *http.Request) (*http.Response, error) {
		if r.isCut.Load() {
			return nil, errors.New("the connection is cut")
		}
		return next.RoundTrip(request)
	})
}

// unnoticed is an observer of calls that does nothing.
type unnoticed struct{}

func (unnoticed) Begin(*handler.Call) func(error) { return func(error) {} }

func (unnoticed) Fail(*handler.Call, error) {}

// startReplica starts a replica. The times of the election are long, so that weeks have few requests.
func startReplica(t *testing.T, server *kopftest.APIServer, declare func(*replica, *kopf.Registry)) *replica {
	t.Helper()
	r := &replica{ended: make(chan struct{})}
	registry := kopf.NewRegistry()
	declare(r, registry)
	config := server.Config()
	config.Wrap(r.connect)
	options := kopf.Options{Registry: registry, Config: config, Logger: logr.Discard()}
	options.Settings.Networking.QPS = -1
	options.Settings.Watching.InactivityTimeout = -1
	options.Settings.Watching.ServerTimeout = 30 * 24 * time.Hour
	options.Settings.Watching.ReconnectLimit = time.Hour
	options.Settings.Scanning.Interval = 24 * time.Hour
	options.Settings.Peering.Standalone = true
	options.Settings.Replicas.LeaderElection = true
	options.Settings.Replicas.LeaseName = "backups"
	options.Settings.Replicas.LeaseNamespace = "default"
	options.Settings.Replicas.LeaseDuration = 8 * time.Hour
	options.Settings.Replicas.RenewDeadline = 6 * time.Hour
	options.Settings.Replicas.RetryPeriod = 2 * time.Hour
	operator, err := kopf.NewOperator(options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(handler.WithObserver(t.Context(), unnoticed{})) // as in the test kit, no queue counts the time
	r.stop = stop
	go func() {
		defer close(r.ended)
		_ = operator.Run(ctx) // a replica that has lost its lease has failed
	}()
	return r
}

// For a year, two replicas take over from each other at random, because the leader stops, is killed, or loses its connection and so
// its lease, also in the middle of runs: each run is made once. What a run does needs the connection, too.
func TestEveryRunOfAScheduleIsMadeOnceByReplicas(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.OnEvent(examples, func(context.Context, *kopf.WatchEvent) error { return nil }, kopf.ID("nothing"))
	}, func(t *testing.T, h *kopftest.Harness) {
		h.Stop()
		server := h.APIServer()
		var mu sync.Mutex
		var made []time.Time
		var leader *replica
		running, takeovers := 0, 0
		declare := func(by *replica, registry *kopf.Registry) {
			registry.Timer(examples, func(ctx context.Context, tick *kopf.Tick) error {
				mu.Lock()
				running++
				if running > 1 {
					t.Errorf("%d runs at once", running)
				}
				if leader != by {
					takeovers++
					leader = by
				}
				mu.Unlock()
				select {
				case <-time.After(3 * time.Hour):
				case <-ctx.Done():
				}
				mu.Lock()
				defer mu.Unlock()
				running--
				switch {
				case ctx.Err() != nil:
					return context.Cause(ctx)
				case by.isCut.Load():
					return errors.New("the backup cannot be stored")
				}
				made = append(made, tick.Scheduled())
				return nil
			}, kopf.ID("backup"), kopf.Schedule("30 2,10,18 * * *", kopf.CatchUp(100)))
		}
		began := time.Now()
		replicas := []*replica{startReplica(t, server, declare), startReplica(t, server, declare)}
		h.Create(newExample())
		random := rand.New(rand.NewPCG(1, 2))
		for time.Since(began) < 365*24*time.Hour {
			time.Sleep(time.Duration(random.Int64N(int64(6 * 24 * time.Hour))))
			i := random.IntN(2)
			replicas[i].isCut.Store(random.IntN(3) > 0)
			if random.IntN(2) > 0 {
				time.Sleep(time.Duration(random.Int64N(int64(24 * time.Hour))))
			}
			if random.IntN(2) > 0 {
				replicas[i].isCut.Store(false)
			}
			replicas[i].stop()
			<-replicas[i].ended
			replicas[i] = startReplica(t, server, declare)
		}
		time.Sleep(5 * 24 * time.Hour)
		for _, r := range replicas {
			r.stop()
			<-r.ended
		}
		if n := len(made); n < 3*365 || takeovers < 40 {
			t.Errorf("got %d runs and %d takeovers", n, takeovers)
		}
		for i := range made[1:] {
			if made[i+1].Sub(made[i]) != 8*time.Hour {
				t.Fatalf("got %s after %s", made[i+1], made[i])
			}
		}
	})
}
