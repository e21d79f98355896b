package main

import (
	"context"
	"time"
)

// company is what was measured of an operator with timers or daemons.
type company struct {
	Subject     string `json:"subject"`
	Description string `json:"description"`

	// Empty, Loaded and Left are the memory without objects, with all, and when
	// all of them are gone again.
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
	// CallsPerSecond and Load are of the time at rest; the load is in cores.
	CallsPerSecond float64 `json:"callsPerSecond"`
	Load           float64 `json:"load"`
}

// attending is the story of an operator with timers or daemons.
func attending(m *measurement) []step {
	return []step{
		{"start", m.start},
		{"warm up", m.warmCompany},
		{"create", m.gather},
		{"rest", m.attend},
		{"delete", m.disperse},
	}
}

func (m *measurement) warmCompany(ctx context.Context) error {
	if _, err := m.appear(ctx, warmUp); err != nil {
		return err
	}
	_, err := m.vanish(ctx, warmUp)
	if err == nil {
		m.company.Empty, err = m.least()
	}
	return err
}

// gather makes the objects, which brings them their timers and daemons.
func (m *measurement) gather(ctx context.Context) error {
	before, err := m.operator.ask(commandSample)
	if err != nil {
		return err
	}
	after, err := m.appear(ctx, m.objects)
	m.company.CreateWrites = float64(after.Requests.minus(before.Requests).Writes) / float64(m.objects)
	m.company.Daemons, m.company.Goroutines = after.Tallied.Daemons, after.Goroutines
	return err
}

// attend looks at the operator while nothing but its timers works.
func (m *measurement) attend(ctx context.Context) (err error) {
	if m.company.Loaded, err = m.least(); err != nil {
		return err
	}
	m.company.BytesPerObject = m.company.Loaded.minus(m.company.Empty).over(m.objects)
	end, err := m.profile("rest")
	if err != nil {
		return err
	}
	if err := m.look(ctx); err != nil {
		return err
	}
	return end()
}

// look lets some time pass, and takes what was done in it.
func (m *measurement) look(ctx context.Context) error {
	before, err := m.operator.ask(commandSample)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := pause(ctx, m.window); err != nil {
		return err
	}
	after, err := m.operator.ask(commandSample)
	took, c := time.Since(began).Seconds(), &m.company
	c.Rest = Rest{Seconds: took, CPU: after.CPU - before.CPU, Requests: after.Requests.minus(before.Requests)}
	c.CallsPerSecond = float64(after.Tallied.Calls-before.Tallied.Calls) / took
	c.Load = c.Rest.CPU.Seconds() / took
	return err
}

// disperse deletes the objects, and looks at what is left of them.
func (m *measurement) disperse(ctx context.Context) error {
	before, err := m.operator.ask(commandSample)
	if err != nil {
		return err
	}
	after, err := m.vanish(ctx, m.objects)
	if err != nil {
		return err
	}
	m.company.DeleteWrites = float64(after.Requests.minus(before.Requests).Writes) / float64(m.objects)
	m.company.GoroutinesLeft = after.Goroutines
	m.company.Left, err = m.least()
	return err
}

// appear makes objects, and returns when all of them have what they should have,
// and every timer was called.
func (m *measurement) appear(ctx context.Context, objects int) (sample, error) {
	before, err := m.operator.ask(commandSample)
	if err != nil {
		return before, err
	}
	if err := m.load.each(ctx, objects, m.load.create); err != nil {
		return before, err
	}
	want := m.subject.company
	return m.settled(ctx, func(now sample) bool {
		return now.Tallied.Present == int64(objects) &&
			(!want.daemon || now.Tallied.Daemons == int64(objects)) &&
			(!want.timer || now.Tallied.Calls-before.Tallied.Calls >= int64(objects))
	})
}

// vanish deletes the objects, and returns when the operator has let go of them.
func (m *measurement) vanish(ctx context.Context, objects int) (sample, error) {
	if err := m.blow(ctx, m.deletion(objects)); err != nil {
		return sample{}, err
	}
	return m.settled(ctx, func(now sample) bool { return now.Tallied.Present == 0 && now.Tallied.Daemons == 0 })
}

// settled waits until the condition is true and no request was made for a while.
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

// least is the memory of the operator with as little garbage as can be: timers
// make some at any time.
func (m *measurement) least() (Memory, error) {
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
