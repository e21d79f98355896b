package operator

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/pkg/events"
	"github.com/kopf-go/kopf/pkg/reconcile"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/settings"
)

// components are what an operator consists of when its settings are final. Some are
// nil for good, and do nothing then; nothing is filled in later.
type components struct {
	engine    *reconcile.Engine
	peering   *peeringMember   // nil: it runs standalone
	admission *admission       // nil: there are no admission handlers
	reviews   http.Handler     // answers what the API servers ask the admission handlers
	recorder  *events.Recorder // nil: no events are posted
	monitor   *monitor
}

// newComponents builds the components on the connection of the manager.
func (o *Operator) newComponents(mgr manager.Manager, a *activityHandlers) (*components, error) {
	s := o.settings.WithDefaults()
	config, recorder, err := o.newEngineConfig(mgr, s)
	if err != nil {
		return nil, err
	}
	var engine *reconcile.Engine // it and the peering need each other; the peering calls it when it runs
	peering, err := newPeeringMember(mgr, o, s, func(paused bool) { engine.SetPaused(paused) })
	if err != nil {
		return nil, err
	}
	admission, err := newAdmission(o, mgr, s)
	if err != nil {
		return nil, err
	}
	peering.startPaused(&config)
	admission.subscribe(&config)
	engine = reconcile.New(config)
	return &components{
		engine: engine, recorder: recorder, peering: peering,
		admission: admission, reviews: admission.newReviews(engine),
		monitor: newMonitor(engine, admission, a.probe, o.options.Logger),
	}, nil
}

// newEngineConfig builds what the engine needs; the recorder is for events about other
// objects, too.
func (o *Operator) newEngineConfig(mgr manager.Manager, s settings.Settings) (config reconcile.Config, recorder *events.Recorder, err error) {
	resources, err := discovery.NewSource(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return config, nil, err
	}
	if recorder, err = o.newRecorder(mgr, s.Posting); err != nil {
		return config, nil, err
	}
	metrics, err := newMetrics(s)
	call := callContext{client: mgr.GetClient(), recorder: recorder}
	return reconcile.Config{
		Handlers: o.handlers, Settings: s, Logger: o.options.Logger, Memos: o.memos,
		REST: mgr.GetConfig(), HTTP: mgr.GetHTTPClient(), Client: mgr.GetClient(),
		Resources: resources, Poster: recorder, Metrics: metrics, Context: call.add,
	}, recorder, err
}

// newRecorder makes the recorder of the operator's events; nil if none are posted.
func (o *Operator) newRecorder(mgr manager.Manager, s settings.Posting) (*events.Recorder, error) {
	if s.Disabled {
		return nil, nil //nolint:nilnil // a nil recorder posts nothing
	}
	clientset, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("the cluster cannot be reached: %w", err)
	}
	return events.New(clientset.CoreV1(), events.Options{
		Component: s.Component, Instance: s.Instance, Level: s.Level, Burst: s.Burst, Refill: s.Refill,
		Logger: o.options.Logger.WithName("events"), Scheme: mgr.GetScheme(),
	}), nil
}
