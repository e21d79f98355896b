package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Add makes an operator a part of a manager of somebody else, with the connection,
// the scheme, the client and the leader election of that.
func Add(mgr manager.Manager, options Options) error {
	o, err := newOperator(options.withDefaults(), mgr.GetScheme())
	if err != nil {
		return err
	}
	o.added = true
	if err := errors.Join(o.alien(), loggedIn(o.activities)); err != nil {
		return err
	}
	o.client = mgr.GetClient
	if len(o.handlers.Admission()) > 0 && options.Settings.Admission.Server == nil {
		if options.Settings.Admission.Managed != "" {
			return errors.New("settings.Admission.Managed needs settings.Admission.Server, by which the API servers reach the admission handlers: " +
				"kopf.MountedServer for the webhook server of the manager, kopf.WebhookServer for one of its own")
		}
		if err := mount(mgr, &o.reviews); err != nil {
			return err
		}
		o.mounted = true
	}
	return errors.Join(o.addReadyzCheck(mgr), o.join(mgr))
}

// alien finds settings of what a manager decides, in an operator that was added to
// one.
func (o *operator) alien() error {
	if !o.added {
		return nil
	}
	s, defaults := o.settings.WithDefaults(), settings.Default()
	var set []string
	for _, group := range []struct {
		name  string
		given bool
	}{
		{"Replicas", s.Replicas != defaults.Replicas},
		{"Metrics.Address", s.Metrics.Address != defaults.Metrics.Address},
		{"Metrics.Secure", s.Metrics.Secure != defaults.Metrics.Secure},
		{"Networking.QPS", s.Networking.QPS != defaults.Networking.QPS},
		{"Networking.Burst", s.Networking.Burst != defaults.Networking.Burst},
	} {
		if group.given {
			set = append(set, "settings."+group.name)
		}
	}
	if len(set) == 0 {
		return nil
	}
	return fmt.Errorf("an operator in a manager cannot have %s: give it to the manager by its options", strings.Join(set, ", "))
}

// loggedIn refuses login handlers: a manager is connected already.
func loggedIn(activities registry.Handlers) error {
	for _, d := range activities.Of(handler.OnLogin) {
		return fmt.Errorf("%s: the login handler %q cannot be used in a manager, which has a connection: give it the Config of a login.Credentials, or use kopf.Run", d.DeclaredAt, d.ID)
	}
	return nil
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
