package operator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/internal/sleep"
	"github.com/kopf-go/kopf/pkg/login"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/settings"
)

// The handlers of the operator itself are called when it starts, stops, logs in, or reports its
// health. They are retried like all handlers, but their progress is not persisted: after a restart,
// the operator calls them again.

// startUp calls the startup handlers, and checks the settings afterwards. From then on, the
// settings are final.
func (o *Operator) startUp(ctx context.Context) error {
	ctx = context.WithValue(ctx, settingsKey{}, &o.settings)
	if err := o.caller(o.client).inOrder(ctx, o.activities.OfKind(handler.OnStartup)); err != nil {
		return err
	}
	o.hasStarted = true
	return errors.Join(checkSettings(o.settings), o.handlers.CheckName(o.settings.Name), o.settings.CheckShardName())
}

type settingsKey struct{}

// SettingsFrom returns the settings of the operator from the context of a startup
// handler, which may change them. It returns nil for any other context.
func SettingsFrom(ctx context.Context) *settings.Settings {
	s, _ := ctx.Value(settingsKey{}).(*settings.Settings)
	return s
}

// SettingsAfterStartup calls the startup handlers of an operator that does not run, once each, and
// returns the settings that they leave. It calls the cleanup handlers afterwards.
func SettingsAfterStartup(ctx context.Context, options Options) (settings.Settings, error) {
	o, err := newOperator(options)
	if err != nil {
		return settings.Settings{}, err
	}
	connection := newConnection(ctx, o)
	defer connection.close()
	o.client = connection.client
	defer o.cleanUp(ctx)
	startup := context.WithValue(ctx, settingsKey{}, &o.settings)
	for _, d := range o.activities.OfKind(handler.OnStartup) {
		for _, result := range o.caller(o.client).once(startup, registry.Handlers{d}) {
			if result.err != nil {
				return o.settings, fmt.Errorf("the startup handler %s (%s) has failed: %w", d.ID, d.DeclaredAt, result.err)
			}
		}
		o.hasStarted = true
	}
	return o.settings, checkSettings(o.settings)
}

// cancelPatience is the time for handlers to return after they are canceled.
const cancelPatience = time.Second

// cleanUp calls the cleanup handlers once if the startup handlers have succeeded, and waits
// for them, unless they ignore their context.
func (o *Operator) cleanUp(ctx context.Context) {
	o.cleaning.Do(func() {
		if !o.hasStarted {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.settings.WithDefaults().Execution.ShutdownTimeout)
		defer cancel()
		late, stop := after(ctx, cancelPatience)
		defer stop()
		failed := make(chan error, 1)
		go func() { failed <- o.caller(o.client).each(ctx, o.activities.OfKind(handler.OnCleanup)) }()
		select {
		case err := <-failed:
			if err != nil {
				o.options.Logger.Error(err, "Some cleanup handlers failed.")
			}
		case <-late:
			o.cleanupIgnored = true
			o.options.Logger.Error(nil, "A cleanup handler has not returned although it was canceled; it is abandoned.")
		}
	})
}

// probe calls the probe handlers. It returns their results or errors by their ids.
func (o *Operator) probe(ctx context.Context) (results map[string]any, failures map[string]error) {
	results = map[string]any{}
	failures = map[string]error{}
	for _, result := range o.caller(o.client).once(ctx, o.activities.OfKind(handler.OnProbe)) {
		if result.err != nil {
			failures[result.id] = result.err
			continue
		}
		results[result.id] = result.value
	}
	return results, failures
}

// logIn calls the login handlers concurrently. They have no client, because they establish
// the connection.
func (o *Operator) logIn(ctx context.Context) (map[string]*login.Connection, error) {
	connections := map[string]*login.Connection{}
	var problems []error
	for _, result := range o.caller(nil).together(ctx, o.activities.OfKind(handler.OnLogin)) {
		if connection, ok := result.value.(*login.Connection); ok && connection != nil {
			connections[result.id] = connection
		}
		if result.err != nil {
			problems = append(problems, fmt.Errorf("the login handler %s failed: %w", result.id, result.err))
		}
	}
	return connections, errors.Join(problems...)
}

// caller returns the caller of the handlers of the operator itself, with the current settings.
func (o *Operator) caller(c func() client.Client) caller {
	return caller{logger: o.options.Logger, backoff: o.settings.WithDefaults().Execution.Backoff, client: c, memos: o.memos}
}

// caller calls handlers of an operator itself, and retries them. It is safe for concurrent use.
type caller struct {
	logger logr.Logger
	// backoff is the delay after an error of a handler that declares none.
	backoff backoff.Backoff
	client  func() client.Client // nil if the handlers have none
	memos   *memo.Values
}

// result is the outcome of a handler.
type result struct {
	id    string
	value any
	err   error // the reason for a missing value; the handler is not retried
}

// inOrder calls handlers one after another, each after the previous one has succeeded,
// because a later handler can depend on an earlier one. It returns an error when a handler
// fails permanently, or when the context is done.
func (c caller) inOrder(ctx context.Context, handlers registry.Handlers) error {
	for _, d := range handlers {
		if err := c.each(ctx, registry.Handlers{d}); err != nil {
			return err
		}
	}
	return nil
}

// each calls handlers one after another, even after failures. It returns all errors.
func (c caller) each(ctx context.Context, handlers registry.Handlers) error {
	var problems []error
	for _, d := range handlers {
		result := c.call(ctx, d)
		if result.err != nil {
			problems = append(problems, fmt.Errorf("the %s handler %s (%s) has failed: %w", d.Kind, d.ID, d.DeclaredAt, result.err))
		}
	}
	return errors.Join(problems...)
}

// together calls handlers concurrently, and returns their results in the order of the
// handlers.
func (c caller) together(ctx context.Context, handlers registry.Handlers) []result {
	return concurrently(handlers, func(d *handler.Declaration) result { return c.call(ctx, d) })
}

// once is like together, but makes only one attempt for each handler, because the client is
// waiting for the response and will ask again.
func (c caller) once(ctx context.Context, handlers registry.Handlers) []result {
	return concurrently(handlers, func(d *handler.Declaration) result {
		outcome := c.attempt(ctx, d, &call.Attempts{})
		if outcome.Err != nil {
			c.loggerFor(d).Error(outcome.Err, fmt.Sprintf("The %s handler has failed.", d.Kind), handler.StackValues(outcome.Err)...)
		}
		return result{id: d.ID, value: outcome.Result, err: outcome.Err}
	})
}

func concurrently(handlers registry.Handlers, call func(*handler.Declaration) result) []result {
	results := make([]result, len(handlers))
	var all sync.WaitGroup
	for i, d := range handlers {
		all.Go(func() { results[i] = call(d) })
	}
	all.Wait()
	return results
}

// call calls one handler until it succeeds or fails permanently.
func (c caller) call(ctx context.Context, d *handler.Declaration) result {
	var series call.Attempts
	for {
		outcome := c.attempt(ctx, d, &series)
		if ctx.Err() != nil && !outcome.Succeeded() {
			return result{id: d.ID, err: errors.Join(context.Cause(ctx), outcome.Err)}
		}
		reportAttempt(c.loggerFor(d), d.Kind, outcome)
		if outcome.Final {
			return result{id: d.ID, value: outcome.Result, err: outcome.Err}
		}
		if !sleep.For(ctx, outcome.Delay) {
			return result{id: d.ID, err: errors.Join(context.Cause(ctx), outcome.Err)}
		}
	}
}

// attempt calls a handler once.
func (c caller) attempt(ctx context.Context, d *handler.Declaration, series *call.Attempts) call.Outcome {
	arguments := handler.Operator{Logger: c.loggerFor(d), Client: c.client, Memo: c.memos}
	ctx = log.IntoContext(ctx, arguments.Logger)
	return series.Try(ctx, d, c.backoff, func(ctx context.Context, a handler.Attempt) (any, error) {
		return d.CallIsolated(ctx, handler.NewActivity(d, arguments, a))
	})
}

func (c caller) loggerFor(d *handler.Declaration) logr.Logger {
	return c.logger.WithValues("handler", d.ID)
}

// reportAttempt logs the outcome of an attempt. Logins are repeated for the life of the operator,
// so only their failures are logged by default.
func reportAttempt(log logr.Logger, kind handler.Kind, o call.Outcome) {
	success := log
	if kind == handler.OnLogin {
		success = log.V(1)
	}
	var temporary *handler.TemporaryError
	switch {
	case o.Ignored != nil:
		log.Error(o.Ignored, fmt.Sprintf("The %s handler has failed; its errors are ignored.", kind), handler.StackValues(o.Ignored)...)
	case o.Err == nil:
		success.Info(fmt.Sprintf("The %s handler has succeeded.", kind))
	case o.Final:
		log.Error(o.Err, fmt.Sprintf("The %s handler has failed permanently.", kind), handler.StackValues(o.Err)...)
	case errors.As(o.Err, &temporary): // the handler asks for it
		log.Info(fmt.Sprintf("The %s handler is called again.", kind), "error", o.Err.Error(), "delay", o.Delay.String())
	default:
		log.Error(o.Err, fmt.Sprintf("The %s handler has failed, and is called again.", kind), append(handler.StackValues(o.Err), "delay", o.Delay.String())...)
	}
}
