package main

import (
	"context"
	"path/filepath"
	"time"
)

// storm is a load on many objects.
type storm struct {
	objects int
	do      func(ctx context.Context, number int) error
	// expect tells the observer what to look for.
	expect func()
}

func (m *measurement) creation(objects int) storm {
	return storm{objects, m.load.create, func() { m.observer.expectHandled(objects, firstRevision) }}
}

func (m *measurement) deletion(objects int) storm {
	return storm{objects, m.load.delete, func() { m.observer.expectGone(objects) }}
}

// patience is how long a storm may take: for runs on slow machines.
const patience = 20 * time.Minute

// blow makes the load and waits until everything is handled.
func (m *measurement) blow(ctx context.Context, s storm) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s.expect()
	if err := m.load.each(ctx, s.objects, s.do); err != nil {
		return err
	}
	return m.observer.wait(ctx)
}

// phase is a storm with its figures.
func (m *measurement) phase(ctx context.Context, name string, s storm) (Phase, error) {
	profile, err := m.profile(name)
	if err != nil {
		return Phase{}, err
	}
	before, err := m.operator.ask(commandSample)
	if err != nil {
		return Phase{}, err
	}
	began := time.Now()
	if err := m.blow(ctx, s); err != nil {
		return Phase{}, err
	}
	took := time.Since(began)
	after, err := m.operator.quiet(ctx) // events may still have to be posted
	if err != nil {
		return Phase{}, err
	}
	return newPhase(s.objects, took, before, after), profile()
}

// profile makes the operator profile itself until the returned function is called.
func (m *measurement) profile(name string) (end func() error, err error) {
	if m.profiles == "" {
		return func() error { return nil }, nil
	}
	dir, err := filepath.Abs(m.profiles)
	if err != nil {
		return nil, err
	}
	if _, err := m.operator.ask(commandProfile + " " + filepath.Join(dir, m.role.Subject+"-"+name+".cpu")); err != nil {
		return nil, err
	}
	return func() error { _, err := m.operator.ask(commandEnd); return err }, nil
}
