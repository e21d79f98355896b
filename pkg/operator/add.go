package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Add adds an operator to the manager of another program. The operator uses the manager's
// connection, scheme, client, and leader election, and runs when the manager runs.
func Add(mgr manager.Manager, options Options) (*Operator, error) {
	if err := unsupportedOptions(mgr, options); err != nil {
		return nil, err
	}
	options.Scheme = mgr.GetScheme()
	if options.Logger.GetSink() == nil {
		options.Logger = mgr.GetLogger().WithName("kopf")
	}
	o, err := newOperator(options)
	if err != nil {
		return nil, err
	}
	o.inManager = true
	o.claimed.Store(true)
	adoptClient(options.Logger)
	if err := errors.Join(o.unsupportedInManager(), unsupportedLogin(o.activities), o.observe(options.Requests)); err != nil {
		return nil, err
	}
	if err := errors.Join(o.mount(mgr), o.addReadyzCheck(mgr)); err != nil {
		return nil, err
	}
	activities := o.newActivityHandlers(mgr.GetClient)
	return o, addTo(mgr,
		everyReplica(func(ctx context.Context) error { return o.runIn(ctx, mgr, activities) }),
		leaderOnly(o.whenStarted(func(r *replica) phase { return r.runLeader })),
	)
}

// runIn starts the operator in a running manager, and runs it until the context is done.
func (o *Operator) runIn(ctx context.Context, mgr manager.Manager, activities *activityHandlers) error {
	defer activities.cleanUp(ctx)
	if err := errors.Join(o.startUp(ctx, activities), o.unsupportedInManager()); err != nil {
		return ignoreStop(ctx, err)
	}
	o.permissions.Begin(o.settings.WithDefaults())
	r, err := o.newReplica(mgr, activities)
	if err != nil {
		return ignoreStop(ctx, err)
	}
	return r.run(ctx)
}

// whenStarted returns a phase that begins as soon as the replica exists.
func (o *Operator) whenStarted(of func(*replica) phase) phase {
	return func(ctx context.Context) error {
		if r, started := o.replica.wait(ctx); started {
			return of(r)(ctx)
		}
		return nil
	}
}

// unsupportedOptions returns an error that lists the options that the manager determines.
func unsupportedOptions(mgr manager.Manager, options Options) error {
	var mistakes []error
	if options.Config != nil {
		mistakes = append(mistakes, errors.New("an operator in a manager cannot have Options.Config: pass it to ctrl.NewManager"))
	}
	if options.Connect != nil {
		mistakes = append(mistakes, errors.New("an operator in a manager cannot have Options.Connect: pass a rest.Config to ctrl.NewManager"))
	}
	if options.Scheme != nil && options.Scheme != mgr.GetScheme() {
		mistakes = append(mistakes, errors.New("an operator in a manager cannot have another Options.Scheme: add the types to the scheme of the manager"))
	}
	return errors.Join(mistakes...)
}

// unsupportedInManager returns an error that lists the settings that the manager determines
// or needs before it starts.
func (o *Operator) unsupportedInManager() error {
	s := o.settings.WithDefaults()
	defaults := settings.Settings{Name: o.settings.Name}.WithDefaults()
	var mistakes []error
	for _, setting := range []struct {
		isSet         bool
		name, instead string
	}{
		{s.Replicas != defaults.Replicas, "Replicas", "set LeaderElection and LeaderElectionID in the options of the manager"},
		{s.Metrics.Address != defaults.Metrics.Address, "Metrics.Address", "set Metrics in the options of the manager"},
		{s.Metrics.Secure != defaults.Metrics.Secure, "Metrics.Secure", "set Metrics in the options of the manager"},
		{s.Networking.QPS != defaults.Networking.QPS, "Networking.QPS", "set QPS in the rest.Config of the manager"},
		{s.Networking.Burst != defaults.Networking.Burst, "Networking.Burst", "set Burst in the rest.Config of the manager"},
		{s.Permissions.LearnFile != "" && o.options.Requests == nil, "Permissions.LearnFile", "observe the connection by kopf.ObservePermissions before you make the manager, and pass what it returns as Options.Permissions"},
		{s.Health.ManagerCheck != o.options.Settings.Health.ManagerCheck, "Health.ManagerCheck from a startup handler", "set it before kopf.Add"},
	} {
		if setting.isSet {
			mistakes = append(mistakes, fmt.Errorf("an operator in a manager cannot have settings.%s: %s", setting.name, setting.instead))
		}
	}
	return errors.Join(mistakes...)
}

// unsupportedLogin rejects login handlers, because a manager is already connected.
func unsupportedLogin(activities registry.Handlers) error {
	for _, d := range activities.OfKind(handler.OnLogin) {
		return fmt.Errorf("%s: the login handler %q cannot be used in a manager, which is connected already: make the manager with the Config of a login.Credentials, or use kopf.Run", d.DeclaredAt, d.ID)
	}
	return nil
}

// reviewsPath is the path of the reviews on the webhook server of a manager, which can have
// other webhooks.
const reviewsPath = "/kopf"

// mount serves the reviews on the webhook server of the manager, unless the settings have a
// server.
func (o *Operator) mount(mgr manager.Manager) error {
	a := o.settings.Admission
	switch {
	case len(o.handlers.Admission()) == 0 || a.Server != nil:
		return nil
	case a.Managed != "":
		return errors.New("settings.Admission.Managed requires settings.Admission.Server, so that the API servers can reach the admission handlers: " +
			"kopf.MountedServer for the webhook server of the manager, kopf.WebhookServer for a separate one")
	}
	err := handler.WithRecover(func() error { // the server panics if the path is taken
		mgr.GetWebhookServer().Register(reviewsPath+"/", http.StripPrefix(reviewsPath, http.HandlerFunc(o.serveMounted)))
		return nil
	})
	if err != nil {
		return fmt.Errorf("the admission handlers cannot be served at %s by the webhook server of the manager, "+
			"most likely because another operator is: give one of them a Settings.Admission.Server: %w", reviewsPath, err)
	}
	o.mounted = true
	return nil
}

// serveMounted answers reviews after the operator has started. It rejects earlier reviews;
// the API server then applies the failure policy of the webhook.
func (o *Operator) serveMounted(w http.ResponseWriter, request *http.Request) {
	if r, started := o.replica.get(); started {
		r.reviews.ServeHTTP(w, request)
		return
	}
	http.Error(w, "the operator has not started yet", http.StatusServiceUnavailable)
}
