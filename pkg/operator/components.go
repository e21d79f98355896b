package operator

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/pkg/events"
	"github.com/kopf-go/kopf/pkg/operator/permissions"
	"github.com/kopf-go/kopf/pkg/reconcile"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/recording"
	"github.com/kopf-go/kopf/pkg/settings"
)

// components are the parts of an operator with its final settings. Some can be nil, which
// disables them; none is set later.
type components struct {
	engine    *reconcile.Engine
	peering   *peeringMember   // nil if it runs standalone
	admission *admission       // nil without admission handlers
	reviews   http.Handler     // answers admission reviews
	recorder  *events.Recorder // nil if no events are posted
	monitor   *monitor

	permissions *permissions.Observer // nil if the requests are not observed
}

// addDiscovered lets the engine call another function with the resources of the cluster.
func addDiscovered(engine *reconcile.Config, discovered func(discovery.Snapshot)) {
	former := engine.Discovered
	engine.Discovered = func(present discovery.Snapshot) {
		discovered(present)
		if former != nil {
			former(present)
		}
	}
}

// newComponents creates the components with the connection of the manager.
func (o *Operator) newComponents(mgr manager.Manager, a *activityHandlers) (*components, error) {
	s := o.settings.WithDefaults()
	config, recorder, err := o.newEngineConfig(mgr, s)
	if err != nil {
		return nil, err
	}
	var engine *reconcile.Engine // the engine and the peering refer to each other
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
	addDiscovered(&config, o.permissions.Discovered)
	engine = reconcile.New(config)
	if err := o.addActivity(mgr, engine); err != nil {
		return nil, err
	}
	return &components{
		engine: engine, recorder: recorder, peering: peering,
		admission: admission, reviews: admission.newReviews(engine),
		permissions: o.permissions,
		monitor:     newMonitor(engine, admission, recorder, a.probe, o.options.Logger),
	}, nil
}

// newEngineConfig returns the configuration of the engine. The recorder also posts events
// about other objects.
func (o *Operator) newEngineConfig(mgr manager.Manager, s settings.Settings) (config reconcile.Config, recorder *events.Recorder, err error) {
	resources, err := discovery.NewSource(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return config, nil, err
	}
	recorder, err = o.newRecorder(mgr, s)
	if err != nil {
		return config, nil, err
	}
	metrics, err := newMetrics(s)
	if err != nil {
		return config, nil, err
	}
	recorded, err := o.newRecording(s)
	call := callContext{client: mgr.GetClient(), recorder: recorder}
	return reconcile.Config{
		Handlers: o.handlers, Settings: s, Logger: o.options.Logger, Memos: o.memos,
		REST: mgr.GetConfig(), HTTP: mgr.GetHTTPClient(), Client: mgr.GetClient(),
		Resources: resources, Poster: recorder, Metrics: metrics, Context: call.add,
		Recorder: recorded,
	}, recorder, err
}

// newRecording begins to record what the operator sees. It returns nil unless the settings ask
// for it.
func (o *Operator) newRecording(s settings.Settings) (*recording.Recorder, error) {
	if s.Recording.File == "" {
		return nil, nil //nolint:nilnil // a nil recorder records nothing
	}
	o.options.Logger.Info("The operator records what it sees.", "file", s.Recording.File)
	return recording.Open(recording.Options{
		File: s.Recording.File, Fields: s.Recording.Fields, Handlers: o.handlers, Logger: o.options.Logger,
		DiffBase: s.Persistence.DiffBase, Progress: s.Persistence.Progress,
	})
}

// newRecorder returns the recorder of the operator's events, or nil if they are disabled.
func (o *Operator) newRecorder(mgr manager.Manager, s settings.Settings) (*events.Recorder, error) {
	if s.Posting.Disabled {
		return nil, nil //nolint:nilnil // a nil recorder posts nothing
	}
	clientset, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("the cluster cannot be reached: %w", err)
	}
	return events.New(clientset.CoreV1(), events.Options{
		Component: eventComponent(s), Instance: s.Posting.Instance, NamePrefix: s.Posting.EventNamePrefix,
		Level: s.Posting.Level, Burst: s.Posting.Burst, Refill: s.Posting.Refill,
		Logger: o.options.Logger.WithName("events"), Scheme: mgr.GetScheme(),
	}), nil
}
