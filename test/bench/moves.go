package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/shards"
)

// Move is what happens when objects move among replicas.
type Move struct {
	Replicas int `json:"replicas"` // afterwards
	Objects  int `json:"objects"`  // that have moved
	// TakenOver is how long it took until all of them were handled by their new replicas.
	TakenOver time.Duration `json:"takenOverNanoseconds"`
	// CPU is the CPU time of all replicas meanwhile, also for changes of objects, and for what a replica that joins does at its
	// start.
	CPU time.Duration `json:"cpuNanoseconds"`
	// Moving has the latencies of changes of objects that have moved, Others those of the other objects, meanwhile.
	Moving Latency `json:"moving"`
	Others Latency `json:"others"`
}

const (
	// moveStep is the pause between two looks at the Leases of the shards.
	moveStep = 50 * time.Millisecond
	// moveChanges is how many objects are changed per second.
	moveChanges = 20
)

// holders has the replica that holds each shard.
type holders [shardNumber]string

// areEven reports whether so many replicas hold equally many shards.
func (h holders) areEven(replicas int) bool {
	held := map[string]int{}
	for _, holder := range h {
		held[holder]++
	}
	for holder, number := range held {
		if holder == "" || number > (shardNumber+replicas-1)/replicas {
			return false
		}
	}
	return len(held) == replicas
}

// holders reads the Leases of the shards.
func (m *measurement) holders(ctx context.Context) (held holders, err error) {
	leases, err := m.clients.CoordinationV1().Leases(namespace).List(ctx, metav1.ListOptions{LabelSelector: "kopf.dev/ring"})
	if err != nil {
		return held, err
	}
	for _, lease := range leases.Items {
		var shard int
		_, number, isShard := strings.Cut(lease.Name, "-shard-")
		if _, err := fmt.Sscan(number, &shard); isShard && err == nil && lease.Spec.HolderIdentity != nil {
			held[shard] = *lease.Spec.HolderIdentity
		}
	}
	return held, nil
}

// shardsByName returns the shards of all objects.
func (m *measurement) shardsByName(ctx context.Context) (map[string]int, error) {
	api, err := client.New(m.config, client.Options{})
	if err != nil {
		return nil, err
	}
	objects := &metav1.PartialObjectMetadataList{}
	objects.SetGroupVersionKind(groupVersion.WithKind(kind + "List"))
	if err := api.List(ctx, objects, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	shardOf := map[string]int{}
	for i := range objects.Items {
		object := &objects.Items[i]
		shardOf[object.Name] = shards.Division{Number: shardNumber}.Of(object.Namespace, object.UID)
	}
	return shardOf, nil
}

// sampleReplicas returns the samples of the replicas. The calls that are tallied are the objects that each has taken over
// since its start.
func (m *measurement) sampleReplicas() (map[*process]sample, error) {
	samples := map[*process]sample{}
	for _, replica := range m.replicas {
		taken, err := replica.ask(commandSample)
		if err != nil {
			return nil, err
		}
		samples[replica] = taken
	}
	return samples, nil
}

// move measures what a function begins: the objects of some shards move to other replicas.
func (m *measurement) move(ctx context.Context, begin func() error) (moved Move, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	held, err := m.holders(ctx)
	if err != nil {
		return Move{}, err
	}
	shardOf, err := m.shardsByName(ctx)
	if err != nil {
		return Move{}, err
	}
	before, err := m.sampleReplicas()
	if err != nil {
		return Move{}, err
	}
	c := m.changeAside(ctx, len(shardOf))
	began := time.Now()
	hasMoved := func(name string) bool { return false }
	if err = begin(); err == nil {
		hasMoved, err = m.awaitMove(ctx, held, shardOf, before)
	}
	moved = Move{Replicas: len(m.replicas), TakenOver: time.Since(began)}
	if err := errors.Join(err, c.end(ctx)); err != nil {
		return Move{}, err
	}
	after, err := m.sampleReplicas()
	if err != nil {
		return Move{}, err
	}
	for replica, now := range after {
		moved.CPU += now.CPU - before[replica].CPU
	}
	for name := range shardOf {
		if hasMoved(name) {
			moved.Objects++
		}
	}
	moved.Moving, moved.Others = c.latencies(hasMoved)
	return moved, nil
}

// awaitMove waits until the shards are held evenly, and all of their objects are taken over. It returns a function that
// reports whether an object has moved.
func (m *measurement) awaitMove(ctx context.Context, before holders, shardOf map[string]int, samples map[*process]sample) (hasMoved func(string) bool, err error) {
	for {
		if err := pause(ctx, moveStep); err != nil {
			return nil, err
		}
		held, err := m.holders(ctx)
		if err != nil {
			return nil, err
		}
		if !held.areEven(len(m.replicas)) {
			continue
		}
		var missing int64
		for _, shard := range shardOf {
			if held[shard] != before[shard] {
				missing++
			}
		}
		now, err := m.sampleReplicas()
		if err != nil {
			return nil, err
		}
		for replica, taken := range now {
			missing -= taken.Tallied.Calls - samples[replica].Tallied.Calls
		}
		if missing <= 0 {
			return func(name string) bool { return held[shardOf[name]] != before[shardOf[name]] }, nil
		}
	}
}

// changes changes objects all the time, each at most once, and measures how long it takes until a change is handled.
type changes struct {
	stop    context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	begun   map[string]time.Time
	took    map[string]time.Duration
	failure error
}

// changeAside begins to change objects.
func (m *measurement) changeAside(ctx context.Context, objects int) *changes {
	ctx, stop := context.WithCancel(ctx)
	c := &changes{stop: stop, begun: map[string]time.Time{}, took: map[string]time.Duration{}}
	m.revision++ // of the spec
	revision := m.revision
	m.observer.observe(func(object metav1.Object) {
		if gjson.Get(object.GetAnnotations()[handledByUs], "spec.revision").Int() == int64(revision) {
			c.handled(object.GetName())
		}
	})
	c.running.Go(func() {
		for _, number := range rand.Perm(objects) { //nolint:gosec // not for cryptography
			c.running.Go(func() {
				c.begin(name(number + 1))
				if err := m.load.revise(context.WithoutCancel(ctx), number+1, revision); err != nil {
					c.fail(err)
				}
			})
			if pause(ctx, time.Second/moveChanges) != nil {
				return
			}
		}
	})
	return c
}

func (c *changes) begin(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun[name] = time.Now()
}

func (c *changes) handled(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.took[name]; !known {
		c.took[name] = time.Since(c.begun[name])
	}
}

func (c *changes) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failure = errors.Join(c.failure, err)
}

// end waits until all changes are handled.
func (c *changes) end(ctx context.Context) error {
	c.stop()
	c.running.Wait()
	for {
		c.mu.Lock()
		left, failure := len(c.begun)-len(c.took), c.failure
		c.mu.Unlock()
		if left == 0 || failure != nil {
			return failure
		}
		if err := pause(ctx, moveStep); err != nil {
			return fmt.Errorf("%d changes were not handled: %w", left, err)
		}
	}
}

// latencies returns the latencies of the changes of objects that have moved, and of others.
func (c *changes) latencies(hasMoved func(name string) bool) (moving, others Latency) {
	var ofMoving, ofOthers []time.Duration
	for name, took := range c.took {
		if hasMoved(name) {
			ofMoving = append(ofMoving, took)
		} else {
			ofOthers = append(ofOthers, took)
		}
	}
	return latencyOf(ofMoving), latencyOf(ofOthers)
}
