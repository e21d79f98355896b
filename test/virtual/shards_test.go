package virtual

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
	"github.com/kopf-go/kopf/pkg/model/stop"
)

var shardSeeds = flag.Int("shard-seeds", 5, "how many stories of replicas with shards are told")

// sharing is what the replicas of an operator with shards do together.
type sharing struct {
	t      *testing.T
	server *kopftest.APIServer

	mu      sync.Mutex
	random  *rand.Rand
	calls   map[types.UID]string // what runs for an object, except daemons
	daemons map[types.UID]string
	// created and deleted are the successes of the handlers.
	created, deleted map[types.UID][]success
	sizes            map[types.UID]int64 // what was handled last
	stops            map[stop.Reason]int // of daemons
	ticks            int
	late             time.Duration // the longest time until a change was handled
	changed          map[types.UID]time.Time
}

// success is that of a handler.
type success struct {
	by *replica
	at time.Time
}

// certain returns how many successes could be recorded: those of a replica that was not cut off in the same moment.
func certain(all []success) (number int) {
	for _, one := range all {
		if cut := time.Unix(0, one.by.wasCut.Load()); cut.Before(one.at) || cut.Sub(one.at) > time.Second {
			number++
		}
	}
	return number
}

// begin records that a handler is called.
func (s *sharing) begin(in map[types.UID]string, by *replica, uid types.UID, what string) (end func()) {
	what = fmt.Sprintf("%s by %p at %s", what, by, time.Now().Format(time.TimeOnly))
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := in[uid]; other != "" {
		s.t.Errorf("%s: %s, during %s", uid, what, other)
	}
	in[uid] = what
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		in[uid] = ""
	}
}

// work is a call of a handler that takes some time, and sometimes fails.
func (s *sharing) work(ctx context.Context, by *replica, uid types.UID, what string, done func()) error {
	defer s.begin(s.calls, by, uid, what)()
	s.mu.Lock()
	lasts := time.Duration(s.random.IntN(4000)) * time.Millisecond
	fails := s.random.IntN(4) == 0
	s.mu.Unlock()
	select {
	case <-time.After(lasts):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	switch {
	case by.isCut.Load():
		return errors.New("nothing can be reached")
	case fails:
		return kopf.Temporary(errors.New("not yet"), time.Second)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	done()
	if late := time.Since(s.changed[uid]); late > s.late && !s.changed[uid].IsZero() {
		s.late = late
	}
	return nil
}

func (s *sharing) declare(by *replica, r *kopf.Registry) {
	sizeOf := func(c *kopf.Change) int64 {
		size, _, _ := unstructured.NestedInt64(c.Body().Raw(), "spec", "size")
		return size
	}
	r.OnCreate(examples, func(ctx context.Context, c *kopf.Change) error {
		return s.work(ctx, by, c.UID(), "creation", func() {
			s.created[c.UID()] = append(s.created[c.UID()], success{by, time.Now()})
			s.sizes[c.UID()] = sizeOf(c)
		})
	}, kopf.ID("create"))
	r.OnUpdate(examples, func(ctx context.Context, c *kopf.Change) error {
		return s.work(ctx, by, c.UID(), "update", func() {
			if s.sizes[c.UID()] == sizeOf(c) {
				s.t.Errorf("%s: the size %d is handled again", c.UID(), sizeOf(c))
			}
			s.sizes[c.UID()] = sizeOf(c)
		})
	}, kopf.ID("update"), kopf.Field("spec.size"))
	r.OnDelete(examples, func(ctx context.Context, c *kopf.Change) error {
		return s.work(ctx, by, c.UID(), "deletion", func() { s.deleted[c.UID()] = append(s.deleted[c.UID()], success{by, time.Now()}) })
	}, kopf.ID("delete"))
	r.Daemon(examples, func(_ context.Context, task *kopf.Task) error {
		defer s.begin(s.daemons, by, task.UID(), "daemon")()
		<-task.Stopped()
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, reason := range []stop.Reason{stop.Moved, stop.LeadershipLost, stop.Exiting} {
			if task.StopReason().Has(reason) {
				s.stops[reason]++
			}
		}
		return nil
	}, kopf.ID("daemon"))
	r.Timer(examples, func(context.Context, *kopf.Tick) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ticks++
		return nil
	}, kopf.ID("timer"), kopf.Interval(10*time.Second))
}

// start starts a replica with shards.
func (s *sharing) start(number int, configure ...func(*kopf.Options)) *replica {
	s.t.Helper()
	r := &replica{ended: make(chan struct{})}
	registry := kopf.NewRegistry()
	s.declare(r, registry)
	config := s.server.Config()
	config.Wrap(r.connect)
	options := kopf.Options{Registry: registry, Config: config, Logger: logr.Discard()}
	options.Settings.Name = "example.com"
	options.Settings.Watching.ReconnectLimit = 2 * time.Second
	options.Settings.Peering.Standalone = true
	options.Settings.Replicas.Shards = number
	options.Settings.Replicas.LeaseNamespace = "default"
	for _, change := range configure {
		change(&options)
	}
	operator, err := kopf.NewOperator(options)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(s.t.Context())
	r.stop = stop
	go func() {
		defer close(r.ended)
		if err := operator.Run(ctx); err != nil {
			s.t.Errorf("a replica has failed: %v", err)
		}
	}()
	return r
}

func logging(name string) func(*kopf.Options) {
	return func(o *kopf.Options) {
		if testing.Verbose() {
			o.Logger = funcr.New(func(prefix, args string) {
				fmt.Println(time.Now().Format("15:04:05.000"), name, prefix, args)
			}, funcr.Options{})
		}
	}
}

// withSharing runs a test with an API server and no operator.
func withSharing(t *testing.T, seed uint64, test func(s *sharing, h *kopftest.Harness), options ...kopftest.Option) {
	t.Helper()
	withOperator(t, func(r *kopf.Registry) {
		r.OnEvent(examples, func(context.Context, *kopf.WatchEvent) error { return nil }, kopf.ID("nothing"))
	}, func(t *testing.T, h *kopftest.Harness) {
		h.Stop()
		test(&sharing{
			t: t, server: h.APIServer(), random: rand.New(rand.NewPCG(seed, 1)), calls: map[types.UID]string{}, daemons: map[types.UID]string{},
			created: map[types.UID][]success{}, deleted: map[types.UID][]success{}, sizes: map[types.UID]int64{}, stops: map[stop.Reason]int{}, changed: map[types.UID]time.Time{},
		}, h)
	}, options...)
}

func sizedExample(name string, size int) *unstructured.Unstructured {
	return kopftest.Object(fmt.Sprintf(`{apiVersion: kopf.dev/v1, kind: KopfExample, metadata: {namespace: default, name: %s}, spec: {size: %d}}`, name, size))
}

// Replicas join, stop, and lose their connection, while objects are created, changed, and deleted: nothing is handled by two
// replicas at once, twice, or not at all.
func TestReplicasShareObjects(t *testing.T) {
	for seed := range uint64(*shardSeeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			withSharing(t, seed, func(s *sharing, h *kopftest.Harness) {
				const number = 8
				began := time.Now()
				replicas := []*replica{}
				join := func() {
					replicas = append(replicas, s.start(number, logging(fmt.Sprint("replica ", len(replicas)))))
				}
				for range 3 {
					join()
				}
				var objects []*unstructured.Unstructured
				live := map[int]bool{}
				random := rand.New(rand.NewPCG(seed, 2))
				pick := func() int {
					for i := range live {
						return i
					}
					return -1
				}
				touch := func(one *unstructured.Unstructured) {
					s.mu.Lock()
					defer s.mu.Unlock()
					s.changed[one.GetUID()] = time.Now()
				}
				for time.Since(began) < 10*time.Minute {
					time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
					switch random.IntN(20) {
					case 0, 1, 2, 3, 4, 5, 6:
						one := sizedExample(fmt.Sprintf("o%d", len(objects)), 1)
						h.Create(one)
						touch(one)
						live[len(objects)] = true
						objects = append(objects, one)
					case 7, 8, 9, 10, 11:
						if i := pick(); i >= 0 {
							h.Patch(objects[i], fmt.Sprintf(`{"spec":{"size":%d}}`, time.Since(began).Milliseconds()))
							touch(objects[i])
						}
					case 12, 13, 14:
						if i := pick(); i >= 0 {
							h.Delete(objects[i])
							touch(objects[i])
							delete(live, i)
						}
					case 15:
						if len(replicas) < 5 {
							join()
						}
					case 16:
						if len(replicas) > 1 {
							i := random.IntN(len(replicas))
							gone := replicas[i]
							replicas = append(replicas[:i], replicas[i+1:]...)
							gone.stop()
							go func() { <-gone.ended }()
						}
					case 17:
						if len(replicas) > 1 {
							cut := replicas[random.IntN(len(replicas))]
							cut.wasCut.Store(time.Now().UnixNano())
							cut.isCut.Store(true)
							time.AfterFunc(time.Duration(random.IntN(60))*time.Second, func() { cut.isCut.Store(false) })
						}
					}
				}
				time.Sleep(3 * time.Minute)
				h.Settle()
				s.mu.Lock()
				for i, one := range objects {
					uid := one.GetUID()
					switch {
					case certain(s.created[uid]) > 1 || certain(s.deleted[uid]) > 1 || live[i] && len(s.created[uid]) == 0:
						t.Errorf("%s: created %v, deleted %v", one.GetName(), s.created[uid], s.deleted[uid])
					case !live[i] && h.Exists(one):
						t.Errorf("%s is still there", one.GetName())
					case live[i]:
						h.Get(one)
						if size, _, _ := unstructured.NestedInt64(one.Object, "spec", "size"); s.sizes[uid] != size {
							t.Errorf("%s has the size %d, and %d was handled", one.GetName(), size, s.sizes[uid])
						}
						if s.daemons[uid] == "" {
							t.Errorf("%s has no daemon", one.GetName())
						}
					}
				}
				t.Logf("%d objects, %d ticks, the latest change was handled after %s, daemons: %v", len(objects), s.ticks, s.late, s.stops)
				s.mu.Unlock()
				for _, r := range replicas {
					r.stop()
				}
				for _, r := range replicas {
					<-r.ended
				}
			})
		})
	}
}
