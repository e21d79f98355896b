package main

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// operator is an operator that runs in the background.
type operator struct {
	ready <-chan struct{} // closed when it knows all objects
	done  chan struct{}   // closed when it has stopped
	err   error           // why it has ended, when it is done; nil if it was stopped
}

// start runs an operator until the context is done. Without Options.Config, the
// operator connects to the cluster of the kubeconfig.
func start(ctx context.Context, name, namespace string, handlers *kopf.Registry) *operator {
	options := kopf.Options{Registry: handlers, Logger: ctrl.Log.WithName(name)}
	options.Settings.Scope.Namespaces = []string{namespace}
	o := &operator{done: make(chan struct{})}
	made, err := kopf.NewOperator(options)
	if err != nil {
		o.err = fmt.Errorf("the operator %s cannot start: %w", name, err)
		close(o.done)
		return o
	}
	o.ready = made.Ready()
	go func() {
		defer close(o.done)
		if err := made.Run(ctx); err != nil {
			o.err = fmt.Errorf("the operator %s has failed: %w", name, err)
		}
	}()
	return o
}

// waitReady waits until the operator is ready. It returns false if the operator ends
// first.
func (o *operator) waitReady() bool {
	select {
	case <-o.ready:
		return true
	case <-o.done:
		return false
	}
}

var kex = kopf.Resource("kopfexamples")

// newCensus declares an operator that only watches. It keeps an index of the objects in
// the cluster up to date for the application, and does not change them.
func newCensus() (*kopf.Index[string, string], *kopf.Registry) {
	registry := kopf.NewRegistry()
	return kopf.NewIndex(registry, kex, fieldsByName), registry
}

func fieldsByName(_ context.Context, i *kopf.Indexed) (map[string]string, error) {
	field, _ := i.Spec().String("field")
	return map[string]string{i.Name(): field}, nil
}

// greetings declares an operator with handlers. Functions without a name need an id.
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
