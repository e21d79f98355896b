package main

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// operator is one that runs in the background.
type operator struct {
	ready chan struct{} // closed when it knows all objects
	done  chan struct{} // closed when nothing of it runs any longer
	err   error         // since it is done: why; nil if it was stopped
}

// start runs an operator until the context is done. The cluster is that of the
// kubeconfig, as everywhere; Options.Config names another one.
func start(ctx context.Context, name, namespace string, handlers *kopf.Registry) *operator {
	o := &operator{ready: make(chan struct{}), done: make(chan struct{})}
	options := kopf.Options{Registry: handlers, Ready: o.ready, Logger: ctrl.Log.WithName(name)}
	options.Settings.Scope.Namespaces = []string{namespace}
	go func() {
		defer close(o.done)
		if err := kopf.Run(ctx, options); err != nil {
			o.err = fmt.Errorf("the operator %s has failed: %w", name, err)
		}
	}()
	return o
}

// isReady waits until it is, or until it has failed to be.
func (o *operator) isReady() bool {
	select {
	case <-o.ready:
		return true
	case <-o.done:
		return false
	}
}

var kex = kopf.Resource("kopfexamples")

// newCensus is an operator that only looks. The application has an index of what is in
// the cluster, always up to date; the objects are not touched.
func newCensus() (*kopf.Index[string, string], *kopf.Registry) {
	registry := kopf.NewRegistry()
	return kopf.NewIndex(registry, kex, fieldsByName), registry
}

func fieldsByName(_ context.Context, i *kopf.Indexed) (map[string]string, error) {
	field, _ := i.Spec().String("field")
	return map[string]string{i.Name(): field}, nil
}

// greetings is an operator with handlers. Functions without a name need an id.
func greetings() *kopf.Registry {
	registry := kopf.NewRegistry()
	registry.OnCreate(kex, func(_ context.Context, c *kopf.Change) error {
		c.SetResult("hello, " + c.Name())
		return nil
	}, kopf.ID("greet"))
	registry.OnCleanup(func(_ context.Context, a *kopf.Activity) error {
		a.Logger().Info("No more greetings.")
		return nil
	}, kopf.ID("farewell"))
	return registry
}
