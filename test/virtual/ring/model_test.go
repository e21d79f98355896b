// Package ring lets the replicas of an operator agree on their shards in virtual time, while they start, stop, and fail.
package ring

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/kubernetes"

	"github.com/kopf-go/kopf/pkg/kopftest"
	"github.com/kopf-go/kopf/pkg/shards"
	"github.com/kopf-go/kopf/pkg/shards/ring"
	"github.com/kopf-go/kopf/test/testenv"
)

// The default times of settings.Replicas.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// world is an API server with the replicas of an operator.
type world struct {
	t        *testing.T
	server   *kopftest.APIServer
	division shards.Division

	mu       sync.Mutex
	replicas []*replica
	down     bool // nothing reaches the API server

	leads atomic.Bool // a replica with leader election leads

	// unheldSince is since when no replica handles a shard, by its number.
	unheldSince []time.Time
	longest     time.Duration
}

func newWorld(t *testing.T, number int) *world {
	w := &world{t: t, server: kopftest.NewAPIServer(t), division: shards.Division{Number: number}, unheldSince: make([]time.Time, number)}
	for shard := range w.unheldSince {
		w.unheldSince[shard] = time.Now()
	}
	return w
}

// replica is a process.
type replica struct {
	world *world
	name  string
	ring  *ring.Ring
	stop  context.CancelFunc
	ended chan struct{}
	err   error // of Run

	division shards.Division
	finish   chan struct{} // closed at the end of the test

	mu     sync.Mutex
	cut    bool          // nothing reaches the API server
	dead   bool          // it does nothing anymore
	thawed chan struct{} // closed while it is not frozen
	logs   []string
	holds  map[int]*hold // by shard

	// send sends a request instead of the transport, unless it is nil.
	send func(*http.Request, http.RoundTripper) (*http.Response, error)

	// returnAfter is how long a Hold continues after its context is done.
	returnAfter func(shard int, cause error) time.Duration
}

// hold is a call of Config.Hold.
type hold struct {
	lease ring.Validity
	cause error // of its end
	since time.Time
}

// client returns a client that is never cut off.
func (w *world) client() kubernetes.Interface {
	client, err := kubernetes.NewForConfig(w.server.Config())
	if err != nil {
		w.t.Fatal(err)
	}
	return client
}

// start starts a replica. Options change it before.
func (w *world) start(name string, options ...func(*replica)) *replica {
	w.t.Helper()
	r := &replica{world: w, name: name, ended: make(chan struct{}), holds: map[int]*hold{}, thawed: make(chan struct{}), finish: make(chan struct{})}
	close(r.thawed)
	r.returnAfter = func(int, error) time.Duration { return 0 }
	config := w.server.Config()
	config.Wrap(r.wrap)
	r.division = w.division
	for _, option := range options {
		option(r)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		w.t.Fatal(err)
	}
	r.ring, err = ring.New(ring.Config{
		Client: client.CoordinationV1(), Namespace: "default", Name: "example", Identity: name, Division: r.division,
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		Logger: funcr.New(func(_, args string) { r.log(args) }, funcr.Options{}), Hold: r.hold,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(w.t.Context())
	r.stop = stop
	w.mu.Lock()
	w.replicas = append(w.replicas, r)
	w.mu.Unlock()
	go func() {
		defer close(r.ended)
		r.err = r.ring.Run(ctx)
	}()
	return r
}

func (r *replica) log(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logs = append(r.logs, line)
}

// count returns how many lines of the log have a text.
func (r *replica) count(text string) (lines int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, line := range r.logs {
		if strings.Contains(line, text) {
			lines++
		}
	}
	return lines
}

// hold is Config.Hold.
func (r *replica) hold(ctx context.Context, shard int, lease ring.Validity) {
	h := &hold{lease: lease, since: time.Now()}
	r.mu.Lock()
	if r.holds[shard] != nil {
		r.world.t.Errorf("%s holds shard %d twice", r.name, shard)
	}
	r.holds[shard] = h
	r.mu.Unlock()
	r.world.check()
	<-ctx.Done()
	cause := context.Cause(ctx)
	if !errors.Is(cause, ring.ErrMoved) && !errors.Is(cause, ring.ErrLost) {
		r.world.t.Errorf("%s gives up shard %d because of %v", r.name, shard, cause)
	}
	r.mu.Lock()
	h.cause = cause
	r.mu.Unlock()
	time.Sleep(r.returnAfter(shard, cause))
	<-r.isThawed()
	r.mu.Lock()
	delete(r.holds, shard)
	r.mu.Unlock()
}

// handles reports whether the replica handles a shard, and its Lease is valid.
func (r *replica) handles(shard int) bool {
	r.mu.Lock()
	h := r.holds[shard]
	dead := r.dead
	r.mu.Unlock()
	return h != nil && !dead && h.lease.Valid()
}

// holdOf returns the call of Config.Hold for a shard, or nil.
func (r *replica) holdOf(shard int) *hold {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.holds[shard]; h != nil {
		return &hold{h.lease, h.cause, h.since}
	}
	return nil
}

// held returns the shards that the replica handles, with valid Leases.
func (r *replica) held() (held shards.Set) {
	for shard := range r.world.division.Number {
		if r.handles(shard) {
			held = held.With(shard)
		}
	}
	return held
}

// check compares what the replicas do.
func (w *world) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for shard := range w.division.Number {
		var by []string
		for _, r := range w.replicas {
			if r.handles(shard) {
				by = append(by, r.name)
			}
		}
		if len(by) > 0 && w.leads.Load() {
			w.t.Errorf("%s: shard %d is handled by %v while a leader leads", now, shard, by)
		}
		if len(by) > 1 {
			w.t.Errorf("%s: shard %d is handled by %v", now, shard, by)
		}
		if len(by) > 0 {
			w.unheldSince[shard] = now
		}
		w.longest = max(w.longest, now.Sub(w.unheldSince[shard]))
	}
}

// advance lets time pass, and watches the replicas.
func (w *world) advance(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(min(250*time.Millisecond, time.Until(end)))
		w.check()
	}
}

// expectSettled expects that the replicas that are alive handle the shards that are assigned to them.
func (w *world) expectSettled(alive ...*replica) {
	w.t.Helper()
	var members []string
	for _, r := range alive {
		members = append(members, r.name)
	}
	for shard, name := range shards.Assign(w.division.Number, members) {
		for _, r := range alive {
			if r.handles(shard) != (r.name == name) {
				w.t.Errorf("shard %d belongs to %s: it is handled by %s: %t", shard, name, r.name, r.handles(shard))
			}
		}
	}
}

// end ends all replicas, also dead ones.
func (w *world) end() {
	w.mu.Lock()
	replicas := slices.Clone(w.replicas)
	w.mu.Unlock()
	for _, r := range replicas {
		r.thaw()
		close(r.finish)
		r.stop()
	}
	for _, r := range replicas {
		<-r.ended
	}
}

// kill ends a replica as SIGKILL does.
func (r *replica) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dead = true
	r.cut = true
}

// freeze stops a replica as SIGSTOP does, as far as the world can see: nothing is sent and received, and its code does not return.
func (r *replica) freeze() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.thawed = make(chan struct{})
}

func (r *replica) thaw() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.thawed:
	default:
		close(r.thawed)
	}
}

func (r *replica) isThawed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.thawed
}

var errCut = errors.New("the connection is cut")

func (r *replica) isCut() bool {
	r.mu.Lock()
	cut := r.cut
	r.mu.Unlock()
	r.world.mu.Lock()
	defer r.world.mu.Unlock()
	return cut || r.world.down
}

func (r *replica) wrap(next http.RoundTripper) http.RoundTripper {
	return testenv.RoundTripper(func(request *http.Request) (*http.Response, error) {
		select {
		case <-r.isThawed():
		case <-request.Context().Done():
			return nil, request.Context().Err()
		}
		if r.isCut() {
			return nil, errCut
		}
		send := next.RoundTrip
		if r.send != nil {
			send = func(request *http.Request) (*http.Response, error) { return r.send(request, next) }
		}
		response, err := send(request)
		if err == nil {
			response.Body = body{response.Body, r}
		}
		return response, err
	})
}

// body is the body of a response, such as the events of a watch.
type body struct {
	io.ReadCloser
	to *replica
}

func (b body) Read(data []byte) (int, error) {
	n, err := b.ReadCloser.Read(data)
	<-b.to.isThawed()
	if b.to.isCut() {
		return 0, errCut
	}
	return n, err
}

// setDown makes the API server unavailable for all, or available.
func (w *world) setDown(down bool) {
	w.mu.Lock()
	w.down = down
	w.mu.Unlock()
	if down {
		w.server.EndWatches()
	}
}

// jittered returns delays of up to a duration.
func jittered(random *rand.Rand, most time.Duration) func(int, error) time.Duration {
	var mu sync.Mutex
	return func(int, error) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Duration(random.Int64N(int64(most)))
	}
}

func nameOf(i int) string { return fmt.Sprintf("replica-%d", i) }
