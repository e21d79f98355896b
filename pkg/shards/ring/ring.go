package ring

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/klog/v2"

	"github.com/kopf-go/kopf/pkg/internal/relist"
	"github.com/kopf-go/kopf/pkg/internal/reportonce"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/shards"
)

// The causes of the contexts of Config.Hold.
var (
	// ErrMoved means that the shard must be given up in an orderly way: another replica should have it, or this one stops.
	ErrMoved = errors.New("the shard moves to another replica")
	// ErrLost means that another replica can hold the shard already.
	ErrLost = errors.New("the lease of the shard is lost")
)

// Config configures a Ring. All fields are required.
type Config struct {
	Client coordinationclient.LeasesGetter
	// Namespace is the namespace of all Leases.
	Namespace string
	// Name is the name of the operator: of the Lease that its replicas would elect a leader by.
	Name string
	// Identity names this process. No other process ever has the same one.
	Identity string
	Division shards.Division
	// LeaseDuration is how long the others wait for a replica that does not renew its Leases. Fractions of a second are
	// dropped, because Leases have none.
	LeaseDuration time.Duration
	// RenewDeadline is how long a replica keeps a shard whose Lease it cannot renew. In the rest of LeaseDuration, it
	// must stop handling it.
	RenewDeadline time.Duration
	// RetryPeriod is the pause after an attempt that has failed. Renewals that succeed do not depend on it: a fifth of
	// RenewDeadline, as in settings.Replicas, leaves time for at least two attempts more.
	RetryPeriod time.Duration
	Logger      logr.Logger
	// Hold handles a shard. It is called in its own goroutine when this replica has got the Lease of the shard, and returns when
	// nothing of the shard is handled here anymore. It must return when the context is done; its cause is ErrMoved or ErrLost.
	// The Lease is renewed until then, unless it is lost, and is released afterwards. It can be lost after the context is
	// done, too.
	Hold func(ctx context.Context, shard int, lease Validity)
}

// Validity reports whether the Lease of a shard is held. It is safe for concurrent use.
type Validity interface {
	// Valid reports whether no other replica can hold the shard, now and for some moments: this one has renewed its Lease within
	// RenewDeadline. It is false after the process was frozen for longer, before anything else can notice that. Once it is
	// false, it stays so, and the Lease is lost. It takes no locks.
	Valid() bool
	// Lost returns a channel that is closed when the Lease is lost.
	Lost() <-chan struct{}
}

// Ring is the part that one replica takes in the agreement. Its methods are safe for concurrent use.
type Ring struct {
	config   Config
	names    names
	client   coordinationclient.LeaseInterface
	duration time.Duration // LeaseDuration, in whole seconds
	failures reportonce.SharedTopics

	// decision and attention wake decide and attend.
	decision, attention chan struct{}
	requests            sync.WaitGroup // that are made aside, and tenures

	gateSeen clock // when the gate was seen to be renewed

	mu      sync.Mutex
	view    view
	joined  bool // the others know this replica, and the gate is held
	leaving bool // Run is asked to stop
	left    bool // the others know that
	tenures map[int]*tenure
	// notBefore is when a removal or release of a Lease can be tried again.
	notBefore  map[string]time.Time
	assignment assignment
	news       news
	// What follows is counted for the metrics. A shard that is lost is not given.
	taken, given, lost uint64
	writes             uint64
}

// New returns a ring.
func New(config Config) (*Ring, error) {
	if config.Division.Number < 1 {
		return nil, fmt.Errorf("the number of shards is %d, and must be positive", config.Division.Number)
	}
	r := &Ring{
		config: config, names: newNames(config), client: config.Client.Leases(config.Namespace),
		duration: config.LeaseDuration.Truncate(time.Second),
		decision: make(chan struct{}, 1), attention: make(chan struct{}, 1),
		view: newView(), tenures: map[int]*tenure{}, notBefore: map[string]time.Time{},
	}
	if _, err := r.newElector(&tenure{ring: r}); err != nil { // so that a wrong duration is noticed
		return nil, fmt.Errorf("the durations of the leases of shards do not fit: %w", err)
	}
	return r, nil
}

// Run takes part until the context is done. Then it lets the others know first, gives up all shards, waits until
// Config.Hold has returned for each of them, and releases the Leases. It waits for a Hold without a limit.
//
// It returns an error if other replicas use another division.
func (r *Ring) Run(ctx context.Context) error {
	handling := context.WithoutCancel(ctx)
	// What client-go logs, this package says in its own words.
	lasting, stop := context.WithCancel(klog.NewContext(handling, logr.Discard()))
	var services sync.WaitGroup
	defer services.Wait()
	defer r.requests.Wait()
	defer stop()
	services.Go(func() { relist.Run(lasting, r.watching(), r.source(), &coordinationv1.Lease{}, store{r}, nil) })
	refused := make(chan error, 1)
	services.Go(func() {
		if err := r.attend(lasting); err != nil {
			refused <- err
		}
	})

	requested := ctx.Done()
	var impatient <-chan time.Time
	var failure error
	for {
		wait, done := r.decide(lasting, handling)
		if done {
			break
		}
		select {
		case <-r.decision:
		case <-time.After(wait):
		case <-requested:
			requested = nil
			impatient = time.After(r.config.RetryPeriod)
			r.leave()
		case <-impatient: // the API server does not answer
			r.setLeft()
		case failure = <-refused:
			requested = nil
			r.leave()
			r.setLeft()
		}
	}
	r.finish(lasting)
	return failure
}

// watching returns the pauses of the reflector.
func (r *Ring) watching() settings.Watching {
	return settings.Watching{
		ServerTimeout: settings.DefaultServerTimeout, InactivityTimeout: r.config.LeaseDuration,
		ReconnectBackoff: settings.DefaultReconnectBackoff, ReconnectLimit: max(r.config.RetryPeriod, settings.DefaultReconnectBackoff),
	}
}

// source returns the source of the Leases with the label of the ring.
func (r *Ring) source() *relist.Source {
	return relist.NewSource[*coordinationv1.LeaseList](r.client, r.timeout(), r.watching(), r.names.narrow, func(err error) {
		r.report("watch", "The leases of the replicas cannot be watched.", err)
	})
}

// timeout returns how long a request can take.
func (r *Ring) timeout() time.Duration { return r.config.RenewDeadline / 2 }

// report logs an error of a topic, unless the last one had the same reason. Nil ends the topic.
func (r *Ring) report(topic, message string, err error) {
	switch {
	case err == nil:
		r.failures.Clear(topic)
	case r.failures.Changed(topic, string(apierrors.ReasonForError(err))):
		r.config.Logger.Error(err, message)
	}
}

// wake makes decide and attend look at what has changed.
func (r *Ring) wake() {
	for _, sleeper := range []chan struct{}{r.decision, r.attention} {
		select {
		case sleeper <- struct{}{}:
		default: // it will look anyway
		}
	}
}
