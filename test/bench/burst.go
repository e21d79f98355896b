package main

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

// burst is an operation on many objects.
type burst struct {
	objects int
	do      func(ctx context.Context, number int) error
	// expect tells the observer what to look for.
	expect func()
	// wait returns when that has happened. Default: when the observer has seen it.
	wait func(ctx context.Context) error
}

func (m *measurement) creation(objects int) burst {
	return burst{objects: objects, do: m.load.create, expect: func() { m.observer.expectHandled(objects, firstRevision) }}
}

func (m *measurement) deletion(objects int) burst {
	return burst{objects: objects, do: m.load.delete, expect: func() { m.observer.expectGone(objects) }}
}

func (m *measurement) changing() burst {
	return burst{objects: m.objects, do: m.load.update, expect: func() { m.observer.expectHandled(m.objects, secondRevision) }}
}

// patience is how long a burst may take. It allows for slow machines.
const patience = 20 * time.Minute

// runBurst runs the operation on all objects and waits until they are handled.
func (m *measurement) runBurst(ctx context.Context, s burst) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s.expect()
	if err := m.load.each(ctx, s.objects, s.do); err != nil {
		return err
	}
	if s.wait != nil {
		return s.wait(ctx)
	}
	return m.observer.wait(ctx)
}

// phase runs a burst and returns its figures.
func (m *measurement) phase(ctx context.Context, name string, s burst) (Phase, error) {
	profile, err := m.profile(name)
	if err != nil {
		return Phase{}, err
	}
	before, err := m.operator.ask(commandSample)
	if err != nil {
		return Phase{}, err
	}
	began := time.Now()
	if err := m.runBurst(ctx, s); err != nil {
		return Phase{}, err
	}
	took := time.Since(began)
	after, err := m.operator.quiet(ctx) // the operator may still be posting events
	if err != nil {
		return Phase{}, err
	}
	return newPhase(s.objects, took, before, after), profile()
}

// profile makes the operator write profiles until the returned function is called.
func (m *measurement) profile(name string) (end func() error, err error) {
	if m.profiles == "" {
		return func() error { return nil }, nil
	}
	path, err := m.profilePath(name)
	if err != nil {
		return nil, err
	}
	if _, err := m.operator.ask(commandProfile + " " + path); err != nil {
		return nil, err
	}
	return func() error { _, err := m.operator.ask(commandEnd); return err }, nil
}

// profilePath returns the absolute path of a CPU profile.
func (m *measurement) profilePath(name string) (string, error) {
	if err := os.MkdirAll(m.profiles, 0o755); err != nil {
		return "", err
	}
	return filepath.Abs(filepath.Join(m.profiles, m.role.Subject+"-"+name+".cpu"))
}
