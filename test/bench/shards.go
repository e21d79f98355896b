package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// shardNumber is the number of shards: 1, 2, 3, and 4 replicas hold equally many of them.
const shardNumber = 12

// shardFigures holds the figures of replicas that share the objects of one operator.
type shardFigures struct {
	Subject     string `json:"subject"`
	Description string `json:"description"`

	// Replicas has the figures for each number of replicas.
	Replicas []replicasFigures `json:"replicas"`
	// Joined is what happens when another replica joins the last ones, Killed what happens when one of them is killed.
	Joined Move `json:"joined"`
	Killed Move `json:"killed"`
}

// replicasFigures holds the figures of some replicas that share the objects.
type replicasFigures struct {
	Create Phase            `json:"create"` // its CPU time is that of all replicas
	Each   []replicaFigures `json:"each"`
}

// replicaFigures holds the figures of one replica.
type replicaFigures struct {
	// Create and Rest are the CPU time while the objects are created and handled, and while they do not change.
	Create time.Duration `json:"createNanoseconds"`
	Rest   time.Duration `json:"restNanoseconds"`
	// Empty and Loaded are the memory at rest, without objects and with all.
	Empty  Memory `json:"empty"`
	Loaded Memory `json:"loaded"`
}

// sharingOperator is the operator of this project, which counts the objects that it takes over.
type sharingOperator struct{}

func (sharingOperator) run(ctx context.Context, env environment) error {
	registry := kopf.NewRegistry()
	declare(registry)
	registry.OnResume(kopf.Resource("kopfexamples"), func(context.Context, *kopf.Change) error {
		env.tally.calls.Add(1)
		return nil
	}, kopf.ID("resume"))
	return operateKopf(ctx, env, registry, func(s *kopf.Settings) {
		s.Posting.Disabled = true
		s.Replicas.Shards = shardNumber
		s.Replicas.LeaseNamespace = namespace
	})
}

// shardSteps returns the steps for replicas that share the objects.
func shardSteps(m *measurement) (steps []step) {
	m.revision = secondRevision
	for i, replicas := range m.replicaCounts {
		name := strconv.Itoa(replicas)
		steps = append(steps,
			step{"start " + name, func(ctx context.Context) error { return m.startReplicas(ctx, replicas) }},
			step{"warm " + name, m.warmReplicas},
			step{"create " + name, m.createForReplicas},
			step{"rest " + name, m.restReplicas},
		)
		if i < len(m.replicaCounts)-1 {
			steps = append(steps, step{"delete " + name, func(ctx context.Context) error { return m.runBurst(ctx, m.deletion(m.objects)) }},
				step{"stop " + name, func(context.Context) error { return m.stopReplicas() }})
		}
	}
	return append(steps, step{"add", m.addObjects}, step{"join", m.join}, step{"kill", m.kill},
		step{"stop", func(context.Context) error { return m.stopReplicas() }})
}

// parseReplicas parses the flag -shards.
func parseReplicas(text string) (counts []int, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		count, err := strconv.Atoi(part)
		if err != nil || count < 1 || count > shardNumber {
			return nil, fmt.Errorf("-shards=%s: use numbers of replicas from 1 to %d, such as 1,2,3", text, shardNumber)
		}
		counts = append(counts, count)
	}
	return counts, nil
}

// startReplicas starts replicas, and waits until all shards are held.
func (m *measurement) startReplicas(ctx context.Context, replicas int) error {
	m.shardFigures.Replicas = append(m.shardFigures.Replicas, replicasFigures{Each: make([]replicaFigures, replicas)})
	for range replicas {
		if err := m.startReplica(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		held, err := m.holders(ctx)
		if err != nil || held.areEven(replicas) {
			return err
		}
		if err := pause(ctx, moveStep); err != nil {
			return fmt.Errorf("not all shards are held: %w", err)
		}
	}
}

func (m *measurement) startReplica(ctx context.Context) error {
	replica, _, err := start(ctx, m.role, m.log)
	if err == nil {
		m.replicas = append(m.replicas, replica)
	}
	return err
}

func (m *measurement) stopReplicas() error {
	var failures []error
	for _, replica := range m.replicas {
		failures = append(failures, replica.stop())
	}
	m.replicas = nil
	return errors.Join(failures...)
}

// current returns the figures of the replicas that are running.
func (m *measurement) current() *replicasFigures {
	return &m.shardFigures.Replicas[len(m.shardFigures.Replicas)-1]
}

// askReplicas sends a command to all replicas, and returns their samples.
func (m *measurement) askReplicas(command string) (samples []sample, err error) {
	for _, replica := range m.replicas {
		taken, err := replica.ask(command)
		if err != nil {
			return nil, err
		}
		samples = append(samples, taken)
	}
	return samples, nil
}

// quietReplicas waits until all replicas are idle.
func (m *measurement) quietReplicas(ctx context.Context) (samples []sample, err error) {
	for _, replica := range m.replicas {
		if _, err := replica.quiet(ctx); err != nil {
			return nil, err
		}
	}
	return m.askReplicas(commandSample)
}

// warmReplicas creates and deletes some objects, and measures the memory without objects.
func (m *measurement) warmReplicas(ctx context.Context) error {
	for _, burst := range []burst{m.creation(m.warmUp()), m.deletion(m.warmUp())} {
		if err := m.runBurst(ctx, burst); err != nil {
			return err
		}
		if _, err := m.quietReplicas(ctx); err != nil {
			return err
		}
	}
	samples, err := m.askReplicas(commandRest)
	for i, empty := range samples {
		m.current().Each[i].Empty = memoryOf(empty)
	}
	return err
}

// createForReplicas creates the objects.
func (m *measurement) createForReplicas(ctx context.Context) error {
	before, err := m.askReplicas(commandSample)
	if err != nil {
		return err
	}
	profile, err := m.profileReplicas("create")
	if err != nil {
		return err
	}
	began := time.Now()
	if err := m.runBurst(ctx, m.paced(m.creation(m.objects))); err != nil {
		return err
	}
	took := time.Since(began)
	after, err := m.quietReplicas(ctx)
	if err != nil {
		return err
	}
	f := m.current()
	for i := range m.replicas {
		f.Each[i].Create = after[i].CPU - before[i].CPU
	}
	f.Create = newPhase(m.objects, took, total(before), total(after))
	return profile()
}

// paced returns a burst that has as many operations per second for each replica as -pace says.
func (m *measurement) paced(b burst) burst {
	if m.pace == 0 {
		return b
	}
	limit := rate.NewLimiter(rate.Limit(m.pace*float64(len(m.replicas))), 1)
	do := b.do
	b.do = func(ctx context.Context, number int) error {
		if err := limit.Wait(ctx); err != nil {
			return err
		}
		return do(ctx, number)
	}
	return b
}

// total adds CPU times and requests.
func total(samples []sample) (all sample) {
	for _, one := range samples {
		all.CPU += one.CPU
		all.Requests = all.Requests.plus(one.Requests)
	}
	return all
}

// profileReplicas makes the replicas write profiles until the returned function is called.
func (m *measurement) profileReplicas(name string) (end func() error, err error) {
	if m.profiles == "" {
		return func() error { return nil }, nil
	}
	for i, replica := range m.replicas {
		path, err := m.profilePath(fmt.Sprintf("%s-%d-of-%d", name, i+1, len(m.replicas)))
		if err != nil {
			return nil, err
		}
		if _, err := replica.ask(commandProfile + " " + path); err != nil {
			return nil, err
		}
	}
	profiled := m.replicas
	return func() error {
		var failures []error
		for _, replica := range profiled {
			_, err := replica.ask(commandEnd)
			failures = append(failures, err)
		}
		return errors.Join(failures...)
	}, nil
}

// restReplicas measures the replicas while the objects do not change.
func (m *measurement) restReplicas(ctx context.Context) error {
	before, err := m.askReplicas(commandRest)
	if err != nil {
		return err
	}
	if err := pause(ctx, m.window); err != nil {
		return err
	}
	after, err := m.askReplicas(commandSample)
	if err != nil {
		return err
	}
	for i := range m.replicas {
		m.current().Each[i].Rest = after[i].CPU - before[i].CPU
		m.current().Each[i].Loaded = memoryOf(before[i])
	}
	return nil
}

// addObjects creates the objects that are missing for a move.
func (m *measurement) addObjects(ctx context.Context) error {
	missing := m.moved - m.objects
	if missing <= 0 {
		return nil
	}
	return m.runBurst(ctx, burst{
		objects: missing, do: func(ctx context.Context, number int) error { return m.load.create(ctx, m.objects+number) },
		expect: func() { m.observer.expectHandled(missing, firstRevision) },
	})
}

// join measures how another replica takes its part of the objects over.
func (m *measurement) join(ctx context.Context) (err error) {
	profile, err := m.profileReplicas("join")
	if err != nil {
		return err
	}
	m.shardFigures.Joined, err = m.move(ctx, func() error { return m.startReplica(ctx) })
	return errors.Join(err, profile())
}

// kill measures how the others take the objects of a replica over that is killed.
func (m *measurement) kill(ctx context.Context) (err error) {
	if _, err := m.quietReplicas(ctx); err != nil {
		return err
	}
	m.shardFigures.Killed, err = m.move(ctx, func() error {
		killed := m.replicas[0]
		m.replicas = m.replicas[1:]
		return killed.kill()
	})
	return err
}
