package operator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/settings"
)

// operator is one operator. A manager runs stand and lead; they end together, and
// stand ends last: it has what lead needs.
type operator struct {
	options    Options
	settings   settings.Settings // startup handlers change them
	handlers   registry.Handlers
	activities registry.Handlers
	memos      *memo.Values
	client     func() client.Client // for the handlers of activities

	started  bool // by startUp
	cleaned  sync.Once
	*parts                 // since begun
	begun    chan struct{} // closed when there are parts
	added    bool          // to a manager of somebody else
	reviews  reviews
	mounted  bool // the reviews, on the webhook server of a manager
	tenure   tenure
	standing sync.WaitGroup
}

// newOperator checks everything that can be checked before anything is started.
func newOperator(options Options, scheme *runtime.Scheme) (*operator, error) {
	handlers, err := options.Registry.Handlers(scheme)
	if err := errors.Join(usable(options.Settings), err); err != nil {
		return nil, err
	}
	return &operator{
		options: options, settings: options.Settings, handlers: handlers,
		activities: options.Registry.Activities(),
		memos:      memo.NewValues(nil), begun: make(chan struct{}),
	}, nil
}

func usable(s settings.Settings) error {
	if mistakes := s.Validate(); mistakes != nil {
		return fmt.Errorf("the settings cannot be used:\n%w", mistakes)
	}
	return nil
}

// join makes the operator a part of a manager.
func (o *operator) join(mgr manager.Manager) error {
	stand := func(ctx context.Context) error {
		o.standing.Add(1)
		defer o.standing.Done()
		return stopped(ctx, o.stand(ctx, mgr))
	}
	for _, part := range []runnable{everywhere(stand), everywhere(o.serveHealth), leading(o.lead)} {
		if err := mgr.Add(part); err != nil {
			return fmt.Errorf("the operator cannot be added to the manager: %w", err)
		}
	}
	return nil
}

// startUp calls the startup handlers, and takes over what they make of the
// settings. It does so once.
func (o *operator) startUp(ctx context.Context) error {
	if o.started {
		return nil
	}
	ctx = withSettings(ctx, &o.settings)
	if err := o.runner().InOrder(ctx, o.activities.Of(handler.OnStartup)); err != nil {
		return err
	}
	o.started = true
	return usable(o.settings)
}

// stand keeps everything ready that a leader needs, until the context is done and
// the leader has finished.
func (o *operator) stand(ctx context.Context, mgr manager.Manager) error {
	defer o.cleanUp(ctx)
	if err := errors.Join(o.startUp(ctx), o.alien()); err != nil {
		return err
	}
	parts, err := newParts(o, mgr)
	if err != nil {
		return err
	}
	if err := parts.metrics.Open(); err != nil {
		return err
	}
	defer parts.metrics.Close()
	o.parts = parts
	close(o.begun)
	if r := o.settings.WithDefaults().Replicas; r.LeaderElection {
		o.options.Logger.Info("This replica stands by until it gets the lease.", "lease", nameOf(leaseOf(r)))
	}
	watching, dismiss := o.assist(ctx)
	defer dismiss()
	err = o.engine.Watch(watching)
	if ctx.Err() == nil {
		err = errors.Join(err, context.Cause(watching))
	}
	_ = o.tenure.end() // lead returns the same error
	return err
}

// assist runs what the handlers need, until the returned function is called: they have
// something to tell, and reviews to answer, until the last of them has returned. The
// context ends with the given one, or with the reason why it does not go on.
func (o *operator) assist(ctx context.Context) (watching context.Context, dismiss func()) {
	lasting, end := context.WithCancel(context.WithoutCancel(ctx))
	watching, fail := context.WithCancelCause(ctx)
	var helpers sync.WaitGroup
	helpers.Go(func() { _ = o.recorder.Start(lasting) }) // never an error
	helpers.Go(func() { o.announce(lasting) })
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := o.admissions.serve(lasting, &o.reviews); err != nil {
			fail(err)
		}
	}()
	return watching, func() {
		fail(nil)
		end()
		helpers.Wait()
		select {
		case <-served:
		case <-time.After(2 * reserve):
			o.options.Logger.Info("Some admission handlers have not returned although they were cancelled; they are left behind.")
		}
	}
}

// announce tells that the operator is ready.
func (o *operator) announce(ctx context.Context) {
	select {
	case <-o.engine.Ready():
	case <-ctx.Done():
		return
	}
	if o.admissions.known(ctx) && o.options.Ready != nil {
		close(o.options.Ready)
	}
}

// lead handles the objects, until the context is done and nothing runs any longer.
// The cleanup comes before the peers may begin.
func (o *operator) lead(ctx context.Context) (err error) {
	select {
	case <-o.begun:
	case <-ctx.Done():
		return nil
	}
	if o.settings.Replicas.LeaderElection {
		o.options.Logger.Info("This replica leads: it handles the objects.")
	}
	ctx, leave := o.tenure.begin(ctx)
	defer func() { leave(err) }()
	return o.others.around(ctx, func(ctx context.Context) error {
		defer o.cleanUp(ctx)
		return o.admissions.around(ctx, o.engine.Aborted, o.work)
	})
}
