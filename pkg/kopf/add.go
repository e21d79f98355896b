package kopf

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/pkg/kopf/registry"
	"github.com/kopf-go/kopf/pkg/reconcile"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/posting"
)

// Add makes the handlers of a registry a part of a manager that is there
// already, beside its other controllers. They use the manager's connection,
// scheme, client, logger and leader election: every replica watches the objects,
// and the leader alone handles them.
//
// A nil registry is the default one. The mistakes in the declarations and the settings are returned at once.
func Add(mgr manager.Manager, r *Registry, s Settings) error {
	options := Options{Registry: r, Settings: s, Logger: mgr.GetLogger().WithName("kopf")}
	return addOperator(mgr, options, func(reviews http.Handler) error { return mount(mgr, reviews) })
}

// addOperator takes of the options what the manager does not have. What answers
// admission reviews, if there are handlers of such, is to be served by whoever
// takes it.
func addOperator(mgr manager.Manager, options Options, serve func(reviews http.Handler) error) error {
	if options.Registry == nil {
		options.Registry = DefaultRegistry
	}
	s := options.Settings
	handlers, err := checked(options, mgr.GetScheme())
	if err != nil {
		return err
	}
	clientset, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("the cluster cannot be reached: %w", err)
	}
	resources, err := discovery.ForConfig(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	others, err := newPeers(mgr, options)
	if err != nil {
		return err
	}
	recorder := newRecorder(clientset, mgr, options)
	surroundings := &surroundings{client: mgr.GetClient(), recorder: recorder}
	config := reconcile.Config{
		Handlers: handlers, Settings: s, Logger: options.Logger,
		REST: mgr.GetConfig(), HTTP: mgr.GetHTTPClient(),
		Client: mgr.GetClient(), Poster: recorder,
		Resources: resources,
		Context:   surroundings.context,
	}
	served := &catalogue{}
	config.Discovered = served.update
	others.join(&config)
	engine := reconcile.New(config)
	if len(handlers.Admission()) > 0 {
		if err := serve(newWebhook(engine, handlers, served)); err != nil {
			return err
		}
	}
	parts := []runnable{everywhere(engine.Watch), leading(others.around(engine)), everywhere(announce(engine, options.Ready))}
	if recorder != nil {
		parts = append(parts, everywhere(recorder.Start))
	}
	return addAll(mgr, parts...)
}

// checked are the handlers, or all mistakes in them and in the settings.
func checked(options Options, scheme *runtime.Scheme) (registry.Handlers, error) {
	handlers, err := options.Registry.handlers.Handlers(scheme)
	if mistakes := options.Settings.Validate(); mistakes != nil {
		err = errors.Join(fmt.Errorf("the settings cannot be used:\n%w", mistakes), err)
	}
	return handlers, err
}

// newRecorder makes what posts the operator's events; nil, if nothing is to be
// posted.
func newRecorder(clientset kubernetes.Interface, mgr manager.Manager, options Options) *posting.Recorder {
	if options.Settings.Posting.Disabled {
		return nil
	}
	return posting.New(clientset.CoreV1(), posting.Options{Logger: options.Logger.WithName("events"), Scheme: mgr.GetScheme()})
}

// announce closes the channel when the operator is ready.
func announce(engine *reconcile.Engine, ready chan<- struct{}) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-engine.Ready():
			if ready != nil {
				close(ready)
			}
		case <-ctx.Done():
		}
		return nil
	}
}

// runnable is a part of the operator for the manager to run.
type runnable struct {
	run     func(context.Context) error
	leading bool
}

// everywhere runs a part on every replica.
func everywhere(run func(context.Context) error) runnable { return runnable{run, false} }

// leading runs a part on the leader only.
func leading(run func(context.Context) error) runnable { return runnable{run, true} }

// Start runs the part until the context is done.
func (r runnable) Start(ctx context.Context) error { return r.run(ctx) }

// NeedLeaderElection tells the manager whether to wait for the leadership.
func (r runnable) NeedLeaderElection() bool { return r.leading }

func addAll(mgr manager.Manager, parts ...runnable) error {
	for _, part := range parts {
		if err := mgr.Add(part); err != nil {
			return fmt.Errorf("the operator cannot be added to the manager: %w", err)
		}
	}
	return nil
}
