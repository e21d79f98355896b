package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Add makes an operator a part of the manager of another program, with the manager's
// connection, scheme, client and leader election. The operator runs when the manager
// does.
func Add(mgr manager.Manager, options Options) (*Operator, error) {
	options.Scheme = mgr.GetScheme()
	o, err := NewOperator(options)
	if err != nil {
		return nil, err
	}
	o.claimed.Store(true)
	if err := errors.Join(unsupportedInManager(o.settings), unsupportedLogin(o.activities)); err != nil {
		return nil, err
	}
	if err := errors.Join(o.mount(mgr), o.addReadyzCheck(mgr)); err != nil {
		return nil, err
	}
	activities := o.newActivityHandlers(mgr.GetClient)
	return o, addTo(mgr,
		everyReplica(func(ctx context.Context) error { return o.runIn(ctx, mgr, activities) }),
		everyReplica(o.whenStarted(func(r *replica) phase { return r.monitor.serveHealth })),
		leaderOnly(o.whenStarted(func(r *replica) phase { return r.runLeader })),
	)
}

// runIn starts the operator in a manager that runs already, and runs it until the
// context is done.
func (o *Operator) runIn(ctx context.Context, mgr manager.Manager, activities *activityHandlers) error {
	defer activities.cleanUp(ctx)
	if err := errors.Join(o.startUp(ctx, activities), unsupportedInManager(o.settings)); err != nil {
		return ignoreStop(ctx, err)
	}
	r, err := o.newReplica(mgr, activities)
	if err != nil {
		return ignoreStop(ctx, err)
	}
	return r.run(ctx)
}

// whenStarted returns a phase of the replica that begins as soon as there is a replica.
func (o *Operator) whenStarted(of func(*replica) phase) phase {
	return func(ctx context.Context) error {
		if r, started := o.replica.wait(ctx); started {
			return of(r)(ctx)
		}
		return nil
	}
}

// unsupportedInManager returns an error that names the settings that are the manager's.
func unsupportedInManager(s settings.Settings) error {
	s, defaults := s.WithDefaults(), settings.Default()
	var unsupported []string
	for _, group := range []struct {
		name  string
		isSet bool
	}{
		{"Replicas", s.Replicas != defaults.Replicas},
		{"Metrics.Address", s.Metrics.Address != defaults.Metrics.Address},
		{"Metrics.Secure", s.Metrics.Secure != defaults.Metrics.Secure},
		{"Networking.QPS", s.Networking.QPS != defaults.Networking.QPS},
		{"Networking.Burst", s.Networking.Burst != defaults.Networking.Burst},
	} {
		if group.isSet {
			unsupported = append(unsupported, "settings."+group.name)
		}
	}
	if len(unsupported) == 0 {
		return nil
	}
	return fmt.Errorf("an operator in a manager cannot have %s: give it to the manager by its options", strings.Join(unsupported, ", "))
}

// unsupportedLogin refuses login handlers: a manager is connected already.
func unsupportedLogin(activities registry.Handlers) error {
	for _, d := range activities.OfKind(handler.OnLogin) {
		return fmt.Errorf("%s: the login handler %q cannot be used in a manager, which has a connection: give it the Config of a login.Credentials, or use kopf.Run", d.DeclaredAt, d.ID)
	}
	return nil
}

// reviewsPath is where the webhook server of a manager receives the reviews, beside
// its other webhooks.
const reviewsPath = "/kopf"

// mount makes the webhook server of the manager receive the reviews, unless the settings
// have a server.
func (o *Operator) mount(mgr manager.Manager) error {
	a := o.settings.Admission
	switch {
	case len(o.handlers.Admission()) == 0 || a.Server != nil:
		return nil
	case a.Managed != "":
		return errors.New("settings.Admission.Managed needs settings.Admission.Server, by which the API servers reach the admission handlers: " +
			"kopf.MountedServer for the webhook server of the manager, kopf.WebhookServer for one of its own")
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

// serveMounted answers reviews when the operator has started. A review that comes
// earlier is refused; the API server then does what the webhook says about failures.
func (o *Operator) serveMounted(w http.ResponseWriter, request *http.Request) {
	if r, started := o.replica.get(); started {
		r.reviews.ServeHTTP(w, request)
		return
	}
	http.Error(w, "the operator has yet to start", http.StatusServiceUnavailable)
}
