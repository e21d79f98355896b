package virtual

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
	"github.com/kopf-go/kopf/pkg/model/rollout"
	"github.com/kopf-go/kopf/pkg/model/stop"
	"github.com/kopf-go/kopf/pkg/shards"
)

// moving is a test of replicas that get shards from each other.
type moving struct {
	t *testing.T
	h *kopftest.Harness
	// declare declares the handlers of a replica with a name.
	declare   func(by string, r *kopf.Registry)
	configure func(name string, o *kopf.Options)

	mu  sync.Mutex
	log []string
}

// member is a replica with its operator.
type member struct {
	replica
	*kopf.Operator
}

func (m *moving) locked(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

// lines returns how many lines of the logs have a text.
func (m *moving) lines(text string) (number int) {
	m.locked(func() {
		for _, line := range m.log {
			if strings.Contains(line, text) {
				number++
			}
		}
	})
	return number
}

const movingShards = 16

// join starts a replica.
func (m *moving) join(name string) *member {
	m.t.Helper()
	one := &member{replica: replica{ended: make(chan struct{})}}
	registry := kopf.NewRegistry()
	m.declare(name, registry)
	config := m.h.APIServer().Config()
	config.Wrap(one.connect)
	options := kopf.Options{Registry: registry, Config: config}
	options.Logger = logr.New(funcr.New(func(_, args string) { m.locked(func() { m.log = append(m.log, name+" "+args) }) }, funcr.Options{}).GetSink())
	options.Settings.Name = "example.com"
	options.Settings.Peering.Standalone = true
	options.Settings.Replicas.Shards = movingShards
	options.Settings.Replicas.LeaseNamespace = "default"
	if m.configure != nil {
		m.configure(name, &options)
	}
	operator, err := kopf.NewOperator(options)
	if err != nil {
		m.t.Fatal(err)
	}
	one.Operator = operator
	ctx, cancel := context.WithCancel(m.t.Context())
	one.stop = cancel
	go func() {
		defer close(one.ended)
		if err := operator.Run(ctx); err != nil {
			m.t.Errorf("a replica has failed: %v", err)
		}
	}()
	m.t.Cleanup(cancel)
	return one
}

// held returns the shards that a replica handles.
func (one *member) held() []int {
	state := one.State().Shards
	if state == nil {
		return nil
	}
	return state.Held
}

// leave stops a replica, and waits until it has ended.
func (one *member) leave() {
	one.stop()
	<-one.ended
}

// kill cuts a replica off for ever, which is all that others see of its death.
func (one *member) kill() {
	one.isCut.Store(true)
	time.AfterFunc(time.Minute, one.stop)
}

// withMoving runs a test with an API server and no operator.
func withMoving(t *testing.T, test func(m *moving, h *kopftest.Harness), options ...kopftest.Option) {
	t.Helper()
	withOperator(t, func(r *kopf.Registry) {
		r.OnEvent(examples, func(context.Context, *kopf.WatchEvent) error { return nil }, kopf.ID("nothing"))
	}, func(t *testing.T, h *kopftest.Harness) {
		h.Stop()
		test(&moving{t: t, h: h}, h)
	}, options...)
}

func shardOf(uid types.UID) int { return shards.Division{Number: movingShards}.Of("default", uid) }

// create creates objects, and returns them.
func (m *moving) create(number int) (all []*unstructured.Unstructured) {
	for i := range number {
		one := sizedExample(fmt.Sprintf("o%d", i), 1)
		m.h.Create(one)
		all = append(all, one)
	}
	return all
}

// versions returns the versions of all objects.
func (m *moving) versions() map[string]string {
	m.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "kopf.dev", Version: "v1", Kind: "KopfExampleList"})
	if err := m.h.Client().List(m.t.Context(), list); err != nil {
		m.t.Fatal(err)
	}
	found := map[string]string{}
	for _, one := range list.Items {
		found[one.GetName()] = one.GetResourceVersion()
	}
	return found
}

func succeed(context.Context, *kopf.Change) error { return nil }

// Replicas join, stop, and die, while objects are at rest. Nothing is written to any of them.
func TestMovesWriteNothingToObjects(t *testing.T) {
	withMoving(t, func(m *moving, _ *kopftest.Harness) {
		daemons := map[types.UID]string{} // by whom
		reasons := map[stop.Reason]int{}
		m.declare = func(by string, r *kopf.Registry) {
			r.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
				c.SetResult("created")
				return nil
			}, kopf.ID("create"))
			r.OnResume(examples, succeed, kopf.ID("resume"))
			r.OnUpdate(examples, succeed, kopf.ID("update"))
			r.OnDelete(examples, succeed, kopf.ID("delete"))
			r.OnEvent(examples, func(context.Context, *kopf.WatchEvent) error { return nil }, kopf.ID("event"))
			r.Timer(examples, func(context.Context, *kopf.Tick) error { return nil }, kopf.ID("timer"), kopf.Interval(7*time.Second))
			r.Daemon(examples, func(_ context.Context, task *kopf.Task) error {
				m.locked(func() {
					if daemons[task.UID()] != "" {
						t.Errorf("%s has the daemons of %s and %s", task.Name(), daemons[task.UID()], by)
					}
					daemons[task.UID()] = by
				})
				<-task.Stopped()
				m.locked(func() {
					daemons[task.UID()] = ""
					for _, reason := range []stop.Reason{stop.Moved, stop.LeadershipLost, stop.Exiting} {
						if task.StopReason().Has(reason) {
							reasons[reason]++
						}
					}
				})
				return nil
			}, kopf.ID("daemon"))
		}
		a := m.join("a")
		m.create(60)
		time.Sleep(time.Minute)
		before := m.versions()
		expect := func(what string, holders ...string) {
			t.Helper()
			time.Sleep(time.Minute)
			if now := m.versions(); !maps.Equal(now, before) {
				t.Errorf("%s: the versions %v have become %v", what, before, now)
			}
			m.locked(func() {
				var by []string
				for _, one := range slices.Sorted(maps.Values(daemons)) {
					if !slices.Contains(by, one) {
						by = append(by, one)
					}
				}
				if !slices.Equal(by, holders) {
					t.Errorf("%s: the daemons are run by %v", what, by)
				}
			})
		}
		expect("at rest", "a")
		b := m.join("b")
		expect("a replica joins", "a", "b")
		c := m.join("c")
		expect("another one joins", "a", "b", "c")
		a.leave()
		expect("one stops", "b", "c")
		b.kill()
		expect("one dies", "c")
		<-b.ended
		c.leave()
		m.locked(func() {
			// About 50 and 30: by the uids, which are random.
			if reasons[stop.Moved] < 20 || reasons[stop.LeadershipLost] < 10 {
				t.Errorf("the daemons have stopped because of %v", reasons)
			}
		})
	})
}

// Shards move in the middle of the runs of a schedule, because replicas join, stop, and die. No run of any object is
// repeated or left out.
func TestMovesNeitherRepeatNorLoseRuns(t *testing.T) {
	withMoving(t, func(m *moving, _ *kopftest.Harness) {
		m.configure = func(_ string, o *kopf.Options) { // hours with few requests
			o.Settings.Replicas.LeaseDuration = 2 * time.Minute
			o.Settings.Replicas.RenewDeadline = 90 * time.Second
			o.Settings.Replicas.RetryPeriod = 30 * time.Second
			o.Settings.Watching.InactivityTimeout = -1
		}
		made := map[string][]time.Time{}
		isDead := map[string]bool{}
		makers := map[string]bool{}
		m.declare = func(by string, r *kopf.Registry) {
			r.Timer(examples, func(ctx context.Context, tick *kopf.Tick) (err error) {
				select {
				case <-time.After(3 * time.Minute):
				case <-ctx.Done():
					return context.Cause(ctx)
				}
				m.locked(func() {
					if isDead[by] {
						err = errors.New("the backup cannot be stored")
						return
					}
					makers[by] = true
					made[tick.Name()] = append(made[tick.Name()], tick.Scheduled())
				})
				return err
			}, kopf.ID("backup"), kopf.Schedule("*/10 * * * *", kopf.CatchUp(100)))
		}
		began := time.Now()
		replicas := []*member{m.join("r0")}
		names := []string{"r0"}
		m.create(8)
		random := rand.New(rand.NewPCG(1, 2))
		for round := range 24 {
			time.Sleep(time.Duration(random.Int64N(int64(20 * time.Minute))))
			i := random.IntN(len(replicas))
			switch {
			case len(replicas) == 1 || len(replicas) < 4 && random.IntN(2) == 0:
				names = append(names, fmt.Sprintf("r%d", round+1))
				replicas = append(replicas, m.join(names[len(names)-1]))
				continue
			case random.IntN(2) == 0:
				replicas[i].leave()
			default:
				m.locked(func() { isDead[names[i]] = true })
				replicas[i].kill()
			}
			replicas = slices.Delete(replicas, i, i+1)
			names = slices.Delete(names, i, i+1)
		}
		time.Sleep(time.Hour)
		for _, one := range replicas {
			one.leave()
		}
		if len(made) != 8 || len(makers) < 5 {
			t.Errorf("got runs of %d objects by %d replicas", len(made), len(makers))
		}
		want := int(time.Since(began)/(10*time.Minute)) - 1
		for name, runs := range made {
			if len(runs) < want {
				t.Errorf("%s: got %d runs, want %d", name, len(runs), want)
			}
			for i := range runs[1:] {
				if runs[i+1].Sub(runs[i]) != 10*time.Minute {
					t.Errorf("%s: got %s after %s", name, runs[i+1], runs[i])
				}
			}
		}
	})
}

// An object that moves is handled as after a restart: it is resumed, event handlers see it, timers and memos begin anew, and
// attempts go on where they were.
func TestMovedObjectsAreResumed(t *testing.T) {
	withMoving(t, func(m *moving, _ *kopftest.Harness) {
		type seen struct {
			created, resumed, events, ticks int
			began, ticked                   time.Time // of the resumption and of the first tick
		}
		all := map[string]map[types.UID]*seen{}
		attempts := map[types.UID][]string{}
		m.declare = func(by string, r *kopf.Registry) {
			m.locked(func() { all[by] = map[types.UID]*seen{} })
			of := func(uid types.UID) *seen {
				if all[by][uid] == nil {
					all[by][uid] = &seen{}
				}
				return all[by][uid]
			}
			r.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
				m.locked(func() { of(c.UID()).created++ })
				return nil
			}, kopf.ID("create"))
			r.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
				m.locked(func() { attempts[c.UID()] = append(attempts[c.UID()], fmt.Sprint(by, c.Retry())) })
				if c.Retry() < 2 {
					return kopf.Temporary(errors.New("not yet"), time.Minute)
				}
				return nil
			}, kopf.ID("retried"), kopf.When(func(a kopf.Arguments) bool { return a.Name() < "o2" }))
			r.OnResume(examples, func(_ context.Context, c *kopf.Change) error {
				m.locked(func() {
					one := of(c.UID())
					one.resumed++
					one.began = time.Now()
				})
				return nil
			}, kopf.ID("resume"))
			r.OnEvent(examples, func(_ context.Context, e *kopf.WatchEvent) error {
				m.locked(func() {
					if e.Type() == "" {
						of(e.UID()).events++
					}
				})
				return nil
			}, kopf.ID("event"))
			r.Timer(examples, func(_ context.Context, tick *kopf.Tick) error {
				m.locked(func() {
					one := of(tick.UID())
					if one.ticks == 0 {
						one.ticked = time.Now()
					}
					one.ticks++
				})
				return nil
			}, kopf.ID("timer"), kopf.InitialDelay(20*time.Second), kopf.Interval(10*time.Second))
		}
		a := m.join("a")
		objects := m.create(60)
		time.Sleep(90 * time.Second) // the second attempts fail after a minute
		b := m.join("b")
		time.Sleep(2 * time.Minute)
		moved := 0
		held := shards.SetOf(b.held()...)
		m.locked(func() {
			for _, one := range objects {
				uid := one.GetUID()
				last := "a"
				if held.Has(shardOf(uid)) {
					moved++
					last = "b"
					switch now := all["b"][uid]; {
					case now == nil || now.created != 0 || now.resumed != 1 || now.events != 1:
						t.Errorf("%s: b has seen %+v", one.GetName(), now)
					case one.GetName() >= "o2" && now.ticked.Sub(now.began).Round(time.Second) != 20*time.Second:
						t.Errorf("%s: the first tick was after %s", one.GetName(), now.ticked.Sub(now.began))
					}
				} else if all["b"][uid] != nil {
					t.Errorf("%s has not moved, and b has seen %+v", one.GetName(), all["b"][uid])
				}
				if first := all["a"][uid]; first == nil || first.created != 1 || first.resumed != 0 {
					t.Errorf("%s: a has seen %+v", one.GetName(), first)
				}
				if one.GetName() < "o2" && !slices.Equal(attempts[uid], []string{"a0", "a1", last + "2"}) {
					t.Errorf("%s, which %s handles, had the attempts %v", one.GetName(), last, attempts[uid])
				}
			}
		})
		if moved < 10 || moved > 50 {
			t.Errorf("%d objects have moved", moved)
		}
		a.leave()
		b.leave()
	})
}

// Handlers that ignore their contexts keep their shards. The other shards of the same replica move at once, and get on.
func TestAHandlerThatDoesNotReturnKeepsItsShard(t *testing.T) {
	withMoving(t, func(m *moving, h *kopftest.Harness) {
		returned := make(chan struct{})
		handled := map[types.UID]string{} // all updates, by whom
		var stuck shards.Set              // half of them, if they have objects
		m.declare = func(by string, r *kopf.Registry) {
			r.OnUpdate(examples, func(_ context.Context, c *kopf.Change) error {
				if by == "a" && stuck.Has(shardOf(c.UID())) {
					<-returned
				}
				m.locked(func() { handled[c.UID()] += by })
				return nil
			}, kopf.ID("update"))
		}
		a := m.join("a")
		objects := m.create(80)
		h.Advance(time.Minute)
		for _, one := range objects {
			if shard := shardOf(one.GetUID()); shard < movingShards/2 {
				stuck = stuck.With(shard)
			}
		}
		for _, one := range objects {
			if stuck.Has(shardOf(one.GetUID())) {
				h.Patch(one, `{"spec":{"size":2}}`)
			}
		}
		time.Sleep(10 * time.Second)
		b := m.join("b")
		time.Sleep(10 * time.Second)
		var moved, kept shards.Set
		for _, shard := range b.held() {
			moved = moved.With(shard)
		}
		for _, shard := range a.State().Shards.Draining {
			kept = kept.With(shard)
		}
		if moved.IsEmpty() || kept.IsEmpty() || moved.Len()+kept.Len() != movingShards/2 {
			t.Fatalf("%s have moved, and %s are kept", moved, kept)
		}
		for shard := range movingShards {
			if stuck.Has(shard) && moved.Has(shard) || !stuck.Has(shard) && kept.Has(shard) {
				t.Errorf("%s have moved, and %s are kept, although %s are stuck", moved, kept, stuck)
			}
		}
		for _, one := range objects {
			if !stuck.Has(shardOf(one.GetUID())) {
				h.Patch(one, `{"spec":{"size":3}}`)
			}
		}
		time.Sleep(10 * time.Second)
		check := func(which func(shard int) bool, by func(shard int) string) {
			t.Helper()
			m.locked(func() {
				for _, one := range objects {
					if shard := shardOf(one.GetUID()); which(shard) && handled[one.GetUID()] != by(shard) {
						t.Errorf("%s in shard %d was handled by %q", one.GetName(), shard, handled[one.GetUID()])
					}
				}
			})
		}
		// What a handler has done is recorded, although it returns too late.
		by := func(shard int) string {
			if moved.Has(shard) {
				return "b"
			}
			return "a"
		}
		check(func(shard int) bool { return !stuck.Has(shard) }, by)

		time.Sleep(2 * time.Minute)
		if said := m.lines("This replica keeps the shard until they return"); said != kept.Len() {
			t.Errorf("it was said %d times that %d shards are kept", said, kept.Len())
		}
		if draining := a.State().Shards.Draining; !slices.Equal(draining, kept.Sorted()) {
			t.Errorf("%v are kept", draining)
		}
		if overdue := measured(t, "kopf_shards", "overdue"); overdue != float64(kept.Len()) {
			t.Errorf("%g shards are overdue", overdue)
		}
		close(returned)
		time.Sleep(time.Minute)
		if held := shards.SetOf(b.held()...); held.Len() != movingShards/2 {
			t.Errorf("b has got only %s", held)
		}
		check(func(int) bool { return true }, by)
		for what, want := range map[string]float64{"taken": movingShards * 3 / 2, "given": movingShards / 2, "lost": 0} {
			if got := measured(t, "kopf_shard_moves_total", what); got != want {
				t.Errorf("%g shards were %s, want %g", got, what, want)
			}
		}
		if n := measured(t, "kopf_shard_move_duration_seconds", "drain"); n != movingShards/2 {
			t.Errorf("%g drains were measured", n)
		}
		if told := m.lines("The API server sends all objects"); told != 2 {
			t.Errorf("%d lines say that the API server knows no sharded watches", told)
		}
		a.leave()
		b.leave()
	})
}

// Each replica counts the objects of its shards. An object that has failed stops the rollout in the replica that handles it,
// also for the objects that it gets later.
func TestReplicasCountTheirOwnObjectsInRollouts(t *testing.T) {
	withMoving(t, func(m *moving, _ *kopftest.Harness) {
		m.declare = func(_ string, r *kopf.Registry) {
			r.OnCreate(examples, succeed, kopf.ID("render"), kopf.Revision("1"))
		}
		first := m.join("first")
		objects := m.create(60)
		time.Sleep(time.Minute)
		first.leave()

		var mu sync.Mutex
		running, handled := map[string]int{}, map[string]int{}
		begin := make(chan struct{})
		bad := ""
		m.declare = func(by string, r *kopf.Registry) {
			r.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
				mu.Lock()
				running[by]++
				mu.Unlock()
				<-begin
				mu.Lock()
				defer mu.Unlock()
				running[by]--
				if bad == "" {
					bad = by
					return kopf.Permanent(errors.New("it cannot be rendered"))
				}
				handled[by]++
				return nil
			}, kopf.ID("render"), kopf.Revision("2"), kopf.Rollout(rollout.First(3)))
		}
		replicas := map[string]*member{"a": m.join("a"), "b": m.join("b")}
		time.Sleep(time.Minute)
		mu.Lock()
		if running["a"] != 3 || running["b"] != 3 {
			t.Errorf("%v run in the first step of 3 objects", running)
		}
		mu.Unlock()
		close(begin)
		time.Sleep(time.Minute)
		other := map[string]string{"a": "b", "b": "a"}[bad]
		own := 0
		held := shards.SetOf(replicas[other].held()...)
		for _, one := range objects {
			if held.Has(shardOf(one.GetUID())) {
				own++
			}
		}
		mu.Lock()
		if handled[bad] != 2 || handled[other] != own {
			t.Errorf("%v were handled, of %d that %s has; %s has one that has failed", handled, own, other, bad)
		}
		mu.Unlock()
		if said := m.lines("is stopped: 1 of"); said != 1 {
			t.Errorf("it was said %d times that the rollout is stopped", said)
		}
		replicas[other].leave()
		time.Sleep(time.Minute)
		mu.Lock()
		if handled[bad] != 2 || handled[other] != own {
			t.Errorf("%v were handled after a failure", handled)
		}
		mu.Unlock()
		replicas[bad].leave()
	})
}

// Each replica measures the objects of its shards, also if it must know all of them for an index.
func TestReplicasMeasureTheirOwnObjects(t *testing.T) {
	for name, isIndexed := range map[string]bool{"handled": false, "handled and indexed": true} {
		t.Run(name, func(t *testing.T) {
			withMoving(t, func(m *moving, h *kopftest.Harness) {
				m.declare = func(_ string, r *kopf.Registry) {
					r.OnCreate(examples, succeed, kopf.ID("create"))
					if isIndexed {
						kopf.NewIndex(r, examples, func(_ context.Context, i *kopf.Indexed) (map[string]string, error) {
							return map[string]string{i.Name(): ""}, nil
						}, kopf.ID("names"))
					}
				}
				replicas := []*member{m.join("a"), m.join("b"), m.join("c")}
				m.create(40)
				h.Advance(time.Minute)
				filter := "operator"
				if isIndexed {
					filter = "none"
				}
				for metric, want := range map[string]float64{"kopf_objects rest": 40, "kopf_shard_objects": 40, "kopf_shards held": movingShards, "kopf_shard_streams " + filter: 3, "kopf_shard_streams server": 0, "kopf_shards_joined": 3, "kopf_shards_unheld": 0} {
					name, label, _ := strings.Cut(metric, " ")
					if got := measured(t, name, label); got != want {
						t.Errorf("%s: got %g, want %g", metric, got, want)
					}
				}
				for _, one := range replicas {
					one.leave()
				}
			})
		})
	}
}

// measured returns the sum of a metric over all operators of the process, with a value of a label unless it is empty.
func measured(t *testing.T, name, label string) (sum float64) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			if label == "" || slices.ContainsFunc(metric.GetLabel(), func(l *dto.LabelPair) bool { return l.GetValue() == label }) {
				sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

// Peers pause all replicas of a ring, and the ring is one peer of others: the holder of shard 0 has the entry.
func TestReplicasWithShardsArePausedTogether(t *testing.T) {
	withMoving(t, func(m *moving, h *kopftest.Harness) {
		handled := map[string]int{}
		m.declare = func(by string, r *kopf.Registry) {
			r.OnUpdate(examples, func(context.Context, *kopf.Change) error {
				m.locked(func() { handled[by]++ })
				return nil
			}, kopf.ID("update"))
		}
		m.configure = func(name string, o *kopf.Options) {
			o.Settings.Peering.Standalone = false
			o.Settings.Peering.Identity = name // otherwise, it asks for the name of the host, outside of virtual time
		}
		peers := kopftest.Object(`{apiVersion: kopf.dev/v1, kind: ClusterKopfPeering, metadata: {name: default}}`)
		h.Create(peers)
		entries := func() (identities []string) {
			h.Get(peers)
			status, _, _ := unstructured.NestedMap(peers.Object, "status")
			return slices.Sorted(maps.Keys(status))
		}
		replicas := map[string]*member{"a": m.join("a"), "b": m.join("b"), "c": m.join("c")}
		objects := m.create(60)
		h.Advance(time.Minute)
		size := 1
		change := func() int {
			size++
			m.locked(func() { clear(handled) })
			for _, one := range objects {
				h.Patch(one, fmt.Sprintf(`{"spec":{"size":%d}}`, size))
			}
			h.Advance(time.Minute)
			m.mu.Lock()
			defer m.mu.Unlock()
			return handled["a"] + handled["b"] + handled["c"]
		}
		first := entries()
		if len(first) != 1 {
			t.Fatalf("the ring has the entries %v", first)
		}
		if n := change(); n != 60 || len(handled) != 3 {
			t.Errorf("%v objects were handled", handled)
		}
		h.Patch(peers, `{"status":{"high":{"priority":100,"lifetime":3600,"lastseen":"2100-01-01T00:00:00+00:00"}}}`)
		time.Sleep(time.Second)
		if n := change(); n != 0 {
			t.Errorf("%v objects were handled during the pause", handled)
		}
		for name, one := range replicas {
			if state := one.State(); !state.Paused || len(state.Shards.Held) == 0 {
				t.Errorf("%s: got %+v", name, state)
			}
		}
		h.Patch(peers, `{"status":{"high":null}}`)
		h.Advance(time.Minute)
		m.locked(func() {
			if len(handled) != 3 || handled["a"]+handled["b"]+handled["c"] != 60 {
				t.Errorf("%v objects were handled after the pause", handled)
			}
		})

		// The entry moves with shard 0.
		for _, ends := range []func(*member){(*member).leave, (*member).kill} {
			holder := ""
			for name, one := range replicas {
				if slices.Contains(one.held(), 0) {
					holder = name
				}
			}
			if holder == "" {
				t.Fatal("no replica has shard 0")
			}
			before := entries()
			ends(replicas[holder])
			delete(replicas, holder)
			time.Sleep(2 * time.Minute)
			if now := entries(); len(now) != 1 || slices.Equal(now, before) {
				t.Errorf("the entries %v have become %v", before, now)
			}
			for name, one := range replicas {
				if state := one.State(); state.Paused {
					t.Errorf("%s is paused by another replica", name)
				}
			}
		}
		for _, one := range replicas {
			one.leave()
		}
		if now := entries(); len(now) != 0 {
			t.Errorf("the ring has left the entries %v", now)
		}
	}, kopftest.CRDs("../../config/crd/kopf.dev"))
}
