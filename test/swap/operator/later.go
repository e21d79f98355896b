//go:build !former

package main

import (
	"context"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// declareOrdered declares handlers that follow each other, and a timer with a schedule.
func declareOrdered(registry *kopf.Registry, examples kopf.Selector, backoff time.Duration) {
	declare := func(id string, order ...kopf.ChangeOption) {
		options := append([]kopf.ChangeOption{kopf.ID(id), kopf.Backoff(backoff)}, order...)
		handler := follow(id)
		registry.OnCreate(examples, handler, options...)
		registry.OnUpdate(examples, handler, options...)
	}
	declare("again", kopf.After("rescue"))
	declare("rescue", kopf.AfterFailure("first", "second"))
	declare("second", kopf.After("first"))
	declare("first")
	registry.Timer(examples, backup, kopf.ID("backup"), kopf.Schedule("* * * * *", kopf.CatchUp(100)), kopf.Backoff(backoff))
}

// backup is the call of a run.
func backup(ctx context.Context, t *kopf.Tick) error {
	e := entry{
		Phase: "start", Handler: "backup", UID: string(t.UID()), Name: t.Name(), Retry: t.Retry(),
		Version: t.Body().ResourceVersion(), Run: t.Scheduled().Format(time.RFC3339),
	}
	e.Step, _ = t.Spec().Int64("step")
	if err := report(ctx, e); err != nil {
		return err
	}
	text, _ := t.Spec().String("plan", "backup")
	_, err := e.follow(ctx, text)
	return err
}
