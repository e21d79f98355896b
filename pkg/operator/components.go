package operator

import (
	"fmt"

	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/pkg/events"
	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/reconcile"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
)

// parts are what an operator consists of when its settings are final.
type parts struct {
	engine     *reconcile.Engine
	others     *peers
	recorder   *events.Recorder // nil: nothing is posted
	metrics    *metrics.Metrics
	admissions *admissions
}

// newParts makes the parts with what the manager has.
func newParts(o *operator, mgr manager.Manager) (*parts, error) {
	clientset, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("the cluster cannot be reached: %w", err)
	}
	resources, err := discovery.NewSource(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	p := &parts{recorder: newRecorder(clientset, mgr, o)}
	if p.others, err = newPeers(mgr, o); err != nil {
		return nil, err
	}
	surroundings := &surroundings{client: mgr.GetClient(), recorder: p.recorder}
	config := reconcile.Config{
		Handlers: o.handlers, Settings: o.settings, Logger: o.options.Logger,
		REST: mgr.GetConfig(), HTTP: mgr.GetHTTPClient(),
		Client: mgr.GetClient(), Poster: p.recorder, Memos: o.memos,
		Resources: resources,
		Context:   surroundings.context,
	}
	if p.metrics, err = newMetrics(o.settings); err != nil {
		return nil, err
	}
	config.Metrics = p.metrics
	if p.admissions, err = newAdmissions(o, mgr); err != nil {
		return nil, err
	}
	if p.admissions != nil {
		config.Discovered = p.admissions.discovered
	}
	p.others.join(&config)
	p.engine = reconcile.New(config)
	p.metrics.Observe(p.engine.State)
	p.others.pause(p.engine)
	if p.admissions != nil {
		answer := newWebhook(p.engine, o.handlers, p.admissions.served)
		o.reviews.ready.Store(&answer)
	}
	return p, nil
}

// newRecorder makes what posts the operator's events; nil, if nothing is to be
// posted.
func newRecorder(clientset kubernetes.Interface, mgr manager.Manager, o *operator) *events.Recorder {
	s := o.settings.Posting
	if s.Disabled {
		return nil
	}
	return events.New(clientset.CoreV1(), events.Options{
		Component: s.Component, Instance: s.Instance, Level: s.Level, Burst: s.Burst, Refill: s.Refill,
		Logger: o.options.Logger.WithName("events"), Scheme: mgr.GetScheme(),
	})
}
