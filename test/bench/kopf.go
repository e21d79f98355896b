package main

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// kopfOperator is the operator of this project: handlers for creation and update, which
// return results, and one for deletion, which needs the finalizer.
type kopfOperator struct {
	events, typed bool
	maxInFlight   int // requests; 0 for the default
}

func (k kopfOperator) run(ctx context.Context, env environment) error {
	registry := kopf.NewRegistry()
	if k.typed {
		declareTyped(registry)
	} else {
		declare(registry)
	}
	return operateKopf(ctx, env, registry, func(s *kopf.Settings) {
		s.Posting.Disabled = !k.events
		s.Networking.MaxInFlight = k.maxInFlight
	})
}

// quietly posts no events.
func quietly(s *kopf.Settings) { s.Posting.Disabled = true }

// operateKopf runs the handlers of a registry.
func operateKopf(ctx context.Context, env environment, registry *kopf.Registry, configure func(*kopf.Settings)) error {
	scheme := runtime.NewScheme()
	if err := addToScheme(scheme); err != nil {
		return err
	}
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	options := kopf.Options{Registry: registry, Config: env.config, Logger: env.logger, Scheme: scheme}
	options.Settings.Execution.Workers = env.Workers
	options.Settings.Name = "bench"
	configure(&options.Settings)
	operator, err := kopf.NewOperator(options)
	if err != nil {
		return err
	}
	go func() {
		select {
		case <-operator.Ready():
			env.ready()
		case <-ctx.Done():
		}
	}()
	return operator.Run(ctx)
}

func declare(registry *kopf.Registry) {
	examples := kopf.Resource("kopfexamples")
	apply := func(_ context.Context, c *kopf.Change) error {
		host, _ := c.Spec().String("host")
		revision, _ := c.Spec().Int64("revision")
		c.SetResult(map[string]any{"url": url(host), "ready": true, "revision": revision})
		return nil
	}
	registry.OnCreate(examples, apply, kopf.ID("apply"))
	registry.OnUpdate(examples, apply, kopf.ID("apply"))
	registry.OnDelete(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("remove"))
}

func declareTyped(registry *kopf.Registry) {
	examples := kopf.For[*Example](registry)
	apply := func(_ context.Context, example *Example, c *kopf.Change) error {
		c.SetResult(outcome(example.Spec))
		return nil
	}
	examples.OnCreate(apply, kopf.ID("apply"))
	examples.OnUpdate(apply, kopf.ID("apply"))
	examples.OnDelete(func(context.Context, *Example, *kopf.Change) error { return nil }, kopf.ID("remove"))
}
