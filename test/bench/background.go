package main

import (
	"context"
	"time"
)

// backgroundFigures holds the figures of an operator with timers or daemons.
type backgroundFigures struct {
	Subject     string `json:"subject"`
	Description string `json:"description"`

	// Empty, Loaded, and Left are the memory without objects, with all objects, and
	// after their deletion.
	Empty          Memory `json:"empty"`
	Loaded         Memory `json:"loaded"`
	Left           Memory `json:"left"`
	BytesPerObject Memory `json:"perObject"`

	Daemons        int64   `json:"daemons"`
	Goroutines     int     `json:"goroutines"`
	GoroutinesLeft int     `json:"goroutinesLeft"`
	CreateWrites   float64 `json:"createWritesPerObject"`
	DeleteWrites   float64 `json:"deleteWritesPerObject"`
	Rest           Rest    `json:"rest"`
	// CallsPerSecond and Load are measured at rest. Load is in cores.
	CallsPerSecond float64 `json:"callsPerSecond"`
	Load           float64 `json:"load"`
}

// backgroundSteps returns the steps for an operator with timers or daemons.
func backgroundSteps(m *measurement) []step {
	return []step{
		{"start", m.start},
		{"warm up", m.warmBackground},
		{"create", m.createBackground},
		{"rest", m.restBackground},
		{"delete", m.deleteBackground},
	}
}

func (m *measurement) warmBackground(ctx context.Context) error {
	if _, err := m.createAndSettle(ctx, m.warmUp()); err != nil {
		return err
	}
	_, err := m.deleteAndSettle(ctx, m.warmUp())
	if err == nil {
		m.backgroundFigures.Empty, err = m.leastMemory()
	}
	return err
}

// createBackground creates the objects, which starts their timers and daemons.
func (m *measurement) createBackground(ctx context.Context) error {
	before, err := m.operator.ask(commandSample)
	if err != nil {
		return err
	}
	after, err := m.createAndSettle(ctx, m.objects)
	m.backgroundFigures.CreateWrites = float64(after.Requests.minus(before.Requests).Writes) / float64(m.objects)
	m.backgroundFigures.Daemons, m.backgroundFigures.Goroutines = after.Tallied.Daemons, after.Goroutines
	return err
}

// restBackground measures the operator while only its timers work.
func (m *measurement) restBackground(ctx context.Context) (err error) {
	if m.backgroundFigures.Loaded, err = m.leastMemory(); err != nil {
		return err
	}
	m.backgroundFigures.BytesPerObject = m.backgroundFigures.Loaded.minus(m.backgroundFigures.Empty).over(m.objects)
	end, err := m.profile("rest")
	if err != nil {
		return err
	}
	if err := m.observeRest(ctx); err != nil {
		return err
	}
	return end()
}

// observeRest measures the calls and the load during the window.
func (m *measurement) observeRest(ctx context.Context) error {
	before, err := m.operator.ask(commandSample)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := pause(ctx, m.window); err != nil {
		return err
	}
	after, err := m.operator.ask(commandSample)
	took, c := time.Since(began).Seconds(), &m.backgroundFigures
	c.Rest = Rest{Seconds: took, CPU: after.CPU - before.CPU, Requests: after.Requests.minus(before.Requests)}
	c.CallsPerSecond = float64(after.Tallied.Calls-before.Tallied.Calls) / took
	c.Load = c.Rest.CPU.Seconds() / took
	return err
}

// deleteBackground deletes the objects, and measures what remains.
func (m *measurement) deleteBackground(ctx context.Context) error {
	before, err := m.operator.ask(commandSample)
	if err != nil {
		return err
	}
	after, err := m.deleteAndSettle(ctx, m.objects)
	if err != nil {
		return err
	}
	m.backgroundFigures.DeleteWrites = float64(after.Requests.minus(before.Requests).Writes) / float64(m.objects)
	m.backgroundFigures.GoroutinesLeft = after.Goroutines
	m.backgroundFigures.Left, err = m.leastMemory()
	return err
}

// createAndSettle creates objects, and returns when all of them have their daemons and
// every timer was called.
func (m *measurement) createAndSettle(ctx context.Context, objects int) (sample, error) {
	before, err := m.operator.ask(commandSample)
	if err != nil {
		return before, err
	}
	if err := m.load.each(ctx, objects, m.load.create); err != nil {
		return before, err
	}
	want := m.subject.background
	return m.settled(ctx, func(now sample) bool {
		return now.Tallied.Present == int64(objects) &&
			(!want.daemon || now.Tallied.Daemons == int64(objects)) &&
			(!want.timer || now.Tallied.Calls-before.Tallied.Calls >= int64(objects))
	})
}

// deleteAndSettle deletes the objects, and returns when the operator has forgotten them.
func (m *measurement) deleteAndSettle(ctx context.Context, objects int) (sample, error) {
	if err := m.runBurst(ctx, m.deletion(objects)); err != nil {
		return sample{}, err
	}
	return m.settled(ctx, func(now sample) bool { return now.Tallied.Present == 0 && now.Tallied.Daemons == 0 })
}

// settled waits until the condition is true and there are no requests for a while.
func (m *measurement) settled(ctx context.Context, condition func(sample) bool) (now sample, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var before sample
	for calm := 0; calm < quietSteps; {
		if err := pause(ctx, quietStep); err != nil {
			return now, err
		}
		if now, err = m.operator.ask(commandSample); err != nil {
			return now, err
		}
		calm++
		if now.Requests != before.Requests || !condition(now) {
			calm = 0
		}
		before = now
	}
	return now, nil
}

// leastMemory returns the lowest memory of several samples, because timers create
// garbage all the time.
func (m *measurement) leastMemory() (Memory, error) {
	least, err := m.operator.ask(commandRest)
	for range 4 {
		if err != nil {
			break
		}
		var now sample
		now, err = m.operator.ask(commandRest)
		least.Resident, least.Heap = min(least.Resident, now.Resident), min(least.Heap, now.Heap)
	}
	return memoryOf(least), err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
