package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// childrenFigures holds the figures of an operator that keeps the children of objects.
type childrenFigures struct {
	Subject     string `json:"subject"`
	Description string `json:"description"`

	// Create and Update are about objects, Drift about a change of one child of each object.
	Create ChildrenPhase `json:"create"`
	Update ChildrenPhase `json:"update"`
	Drift  ChildrenPhase `json:"drift"`
	Rest   Rest          `json:"rest"`
	// Called and Repaired are the times from the change of a child until the function of its
	// object is called, and until the child is as it was.
	Called   Latency `json:"called"`
	Repaired Latency `json:"repaired"`
	Restart  Restart `json:"restart"`
	// BytesPerChild is the memory of objects and their children at rest, after a restart,
	// over the children.
	BytesPerChild Memory `json:"perChild"`
	// BytesKept is the memory of a child beyond that of its object, and BytesCached that of a
	// child in the compact cache.
	BytesKept   *Memory `json:"keptPerChild,omitempty"`
	BytesCached *Memory `json:"cachedPerChild,omitempty"`
}

// ChildrenPhase is what it took to handle one change of every object, or of one of its children.
type ChildrenPhase struct {
	Phase
	ChildrenPerObject float64 `json:"childrenWritesPerObject"`
	OthersPerObject   float64 `json:"otherRequestsPerObject"`
}

// relativeTo returns the ratios of CPU time and of writes.
func (p ChildrenPhase) relativeTo(other ChildrenPhase) string {
	return fmt.Sprintf("%.2f and %.2f", ratio(p.Phase, other.Phase),
		(p.WritesPerObject+p.ChildrenPerObject)/(other.WritesPerObject+other.ChildrenPerObject))
}

const (
	goalKept    = 600 // bytes of heap per child, beyond its share of the compact cache
	goalLatency = 1.2 // of the p99 of the hand-written operator
)

// childrenSteps returns the steps for an operator that keeps children.
func childrenSteps(m *measurement) []step {
	steps := []step{
		{"start", m.start},
		{"warm up", m.warmChildren},
		{"create", func(ctx context.Context) error {
			return m.childrenPhase(ctx, &m.childrenFigures.Create, m.creation(m.objects))
		}},
		{"rest", m.restChildren},
		{"update", func(ctx context.Context) error { return m.childrenPhase(ctx, &m.childrenFigures.Update, m.changing()) }},
		{"drift", m.drift},
		{"react", m.reactions},
		{"restart", m.restartChildren},
	}
	if m.role.Subject == childrenEnsured {
		steps = append(steps, step{"cache", m.cacheAlone})
	}
	return steps
}

// warmChildren creates and deletes some objects with their children: there is no garbage collector.
func (m *measurement) warmChildren(ctx context.Context) error {
	for _, burst := range []burst{m.creation(m.warmUp()), m.deletion(m.warmUp())} {
		if err := m.runBurst(ctx, burst); err != nil {
			return err
		}
		if _, err := m.operator.quiet(ctx); err != nil {
			return err
		}
	}
	if err := m.deleteChildren(ctx); err != nil {
		return err
	}
	if _, err := m.operator.quiet(ctx); err != nil {
		return err
	}
	empty, err := m.leastMemory()
	m.figures.Empty = empty
	return err
}

// deleteChildren deletes all children, whose objects are gone.
func (m *measurement) deleteChildren(ctx context.Context) error {
	for _, api := range []struct {
		path   string
		plural string
	}{
		{"/apis/apps/v1", "deployments"}, {"/api/v1", "services"}, {"/api/v1", "configmaps"}, {"/api/v1", "secrets"}, {"/api/v1", "serviceaccounts"},
	} {
		request := m.clients.CoreV1().RESTClient().Delete().AbsPath(api.path, "namespaces", namespace, api.plural).Param("labelSelector", childLabel)
		if err := request.Do(ctx).Error(); err != nil {
			return fmt.Errorf("deleting all %s: %w", api.plural, err)
		}
	}
	return nil
}

// childrenPhase measures a burst.
func (m *measurement) childrenPhase(ctx context.Context, into *ChildrenPhase, b burst) error {
	before, err := m.operator.ask(commandSample)
	if err != nil {
		return err
	}
	if into.Phase, err = m.phase(ctx, "children", b); err != nil {
		return err
	}
	after, err := m.operator.ask(commandSample)
	made, n := after.Requests.minus(before.Requests), float64(b.objects)
	into.ChildrenPerObject, into.OthersPerObject = float64(made.Children)/n, float64(made.Others)/n
	return err
}

// drift changes one child of each object, all at once.
func (m *measurement) drift(ctx context.Context) (err error) {
	if m.repairs, err = watchRepairs(ctx, m.clients.CoreV1().ConfigMaps(namespace)); err != nil {
		return err
	}
	return m.childrenPhase(ctx, &m.childrenFigures.Drift, burst{
		objects: m.objects, do: m.repairs.breakChild, wait: m.repairs.wait,
		expect: func() { m.repairs.expect(m.objects) },
	})
}

// reactions measures changes of children of different objects, one after the other.
func (m *measurement) reactions(ctx context.Context) error {
	defer m.repairs.stop() // the API server waits for it when it stops
	var called, repaired []time.Duration
	for i := range m.changes {
		took, err := m.react(ctx, i%m.objects+1)
		if err != nil {
			return err
		}
		called, repaired = append(called, took.called), append(repaired, took.repaired)
	}
	m.childrenFigures.Called, m.childrenFigures.Repaired = latencyOf(called), latencyOf(repaired)
	_, err := m.operator.quiet(ctx)
	return err
}

func (m *measurement) restChildren(ctx context.Context) error {
	err := m.rest(ctx)
	m.childrenFigures.Rest = m.figures.Rest
	return err
}

func (m *measurement) restartChildren(ctx context.Context) error {
	if err := m.restart(ctx); err != nil {
		return err
	}
	loaded, err := m.leastMemory()
	m.figures.Loaded, m.figures.Restart.Memory = loaded, loaded
	m.childrenFigures.Restart = m.figures.Restart
	m.childrenFigures.BytesPerChild = loaded.minus(m.figures.Empty).over(m.objects * childrenOf)
	return err
}

// cacheAlone replaces the operator by one that has only the objects, and by one that has the
// objects and the children in its cache, and compares their memory.
func (m *measurement) cacheAlone(ctx context.Context) error {
	alone, err := m.memoryAfterStart(ctx, childrenAlone)
	if err != nil {
		return err
	}
	cached, err := m.memoryAfterStart(ctx, childrenCached)
	inCache, kept := cached.minus(alone).over(m.objects*childrenOf), m.figures.Loaded.minus(alone).over(m.objects*childrenOf)
	m.childrenFigures.BytesCached, m.childrenFigures.BytesKept = &inCache, &kept
	return err
}

// memoryAfterStart replaces the operator by another one, and measures it at rest.
func (m *measurement) memoryAfterStart(ctx context.Context, subject string) (Memory, error) {
	if err := m.operator.stop(); err != nil {
		return Memory{}, err
	}
	m.role.Subject = subject
	if err := m.start(ctx); err != nil {
		return Memory{}, err
	}
	if _, err := m.operator.quiet(ctx); err != nil {
		return Memory{}, err
	}
	return m.leastMemory()
}

// printChildren prints the figures of operators that keep children, and the goals.
func (r report) printChildren(out io.Writer) error {
	if len(r.Children) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(name string, of func(childrenFigures) string) {
		_, _ = fmt.Fprintf(table, "%s\t", name)
		for _, f := range r.Children {
			_, _ = fmt.Fprintf(table, "%s\t", of(f))
		}
		_, _ = fmt.Fprintln(table)
	}
	line("", func(f childrenFigures) string { return f.Subject })
	for _, phase := range []struct {
		name string
		of   func(childrenFigures) ChildrenPhase
	}{
		{"create", func(f childrenFigures) ChildrenPhase { return f.Create }},
		{"update", func(f childrenFigures) ChildrenPhase { return f.Update }},
		{"a changed child", func(f childrenFigures) ChildrenPhase { return f.Drift }},
	} {
		line(phase.name+": CPU per object", func(f childrenFigures) string { return micro(phase.of(f).CPUPerObject) })
		line("writes of the object, of children", func(f childrenFigures) string {
			return fmt.Sprintf("%.2f, %.2f", phase.of(f).WritesPerObject, phase.of(f).ChildrenPerObject)
		})
		line("other requests", func(f childrenFigures) string {
			return fmt.Sprintf("%.2f", phase.of(f).OthersPerObject+phase.of(f).ReadsPerObject+phase.of(f).EventsPerObject)
		})
	}
	line("at rest: requests, watches renewed", func(f childrenFigures) string {
		return fmt.Sprintf("%d, %d in %.0fs", f.Rest.Requests.all(), f.Rest.Requests.Watches, f.Rest.Seconds)
	})
	line("CPU", func(f childrenFigures) string { return milli(f.Rest.CPU) })
	line("change of a child until the call: p50", func(f childrenFigures) string { return micro(f.Called.Median) })
	line("p99", func(f childrenFigures) string { return micro(f.Called.P99) })
	line("until the repair: p50", func(f childrenFigures) string { return micro(f.Repaired.Median) })
	line("p99", func(f childrenFigures) string { return micro(f.Repaired.P99) })
	line("restart: writes of objects, of children", func(f childrenFigures) string {
		return fmt.Sprintf("%d, %d", f.Restart.Requests.Writes, f.Restart.Requests.Children)
	})
	line("reads, watches, discovery, other requests", func(f childrenFigures) string {
		r := f.Restart.Requests
		return fmt.Sprintf("%d, %d, %d, %d", r.Reads, r.Watches, r.Discovery, r.Others)
	})
	line("CPU until at rest", func(f childrenFigures) string { return milli(f.Restart.CPU) })
	line("Go heap per child at rest, with its share of the object", func(f childrenFigures) string { return fmt.Sprintf("%d B", f.BytesPerChild.Heap) })
	if err := table.Flush(); err != nil {
		return err
	}
	r.compareChildren(out)
	return nil
}

// compareChildren compares the figures with the goals, as far as the subjects allow.
func (r report) compareChildren(out io.Writer) {
	bySubject := map[string]childrenFigures{}
	for _, f := range r.Children {
		bySubject[f.Subject] = f
	}
	mine, other := bySubject[childrenEnsured], bySubject[childrenHandwritten]
	if mine.BytesKept != nil {
		_, _ = fmt.Fprintf(out, "\nGo heap per child: %d B; in the compact cache it would take %d B; the difference is %d B (goal: %d)\n",
			mine.BytesKept.Heap, mine.BytesCached.Heap, mine.BytesKept.Heap-mine.BytesCached.Heap, goalKept)
	}
	if mine.Called.P99 > 0 && other.Called.P99 > 0 {
		_, _ = fmt.Fprintf(out, "p99 relative to %s: until the call %.2f, until the repair %.2f (goal: %.1f)\n", childrenHandwritten,
			float64(mine.Called.P99)/float64(other.Called.P99), float64(mine.Repaired.P99)/float64(other.Repaired.P99), goalLatency)
	}
	if external, measured := bySubject[childrenExternal]; measured && mine.Subject != "" {
		_, _ = fmt.Fprintf(out, "relative to %s, CPU and writes per object: create %s, update %s, a changed child %s\n", childrenExternal,
			mine.Create.relativeTo(external.Create), mine.Update.relativeTo(external.Update), mine.Drift.relativeTo(external.Drift))
	}
}
