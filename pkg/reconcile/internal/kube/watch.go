package kube

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kopf-go/kopf/pkg/settings"
)

// What client-go makes of these is an empty watch, or a context that is done.
var (
	errClosed   = errors.New("the API server has closed the connection")
	errNoAnswer = errors.New("the API server does not answer")
)

// follower lists and watches the objects of one namespace, for one reflector. It
// waits itself until a server is back that is away for the moment: reflectors do
// so, too, but tell nobody, do not stop waiting when they are to stop, and after
// most failures list everything again.
type listWatcher struct {
	*Client
	namespace string
	watching  settings.Watching
	report    func(error)

	lastRequest time.Time // when the last watch was asked for
	failures    int       // in a row
}

// ListWatch feeds an informer with the objects of one namespace; of all
// namespaces if it is empty. The outcome is called with whatever keeps it from
// that, each time, and with nil when a watch has begun.
func (c *Client) ListWatch(namespace string, watching settings.Watching, outcome func(error)) cache.ListerWatcher {
	f := &listWatcher{Client: c, namespace: namespace, watching: watching, report: outcome}
	return &cache.ListWatch{ListWithContextFunc: f.list, WatchFuncWithContext: f.watch}
}

// list reads one page of the objects. It is not repeated here: reflectors do that,
// less and less often.
func (f *listWatcher) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := f.Client.listPage(ctx, f.namespace, options)
	if err != nil {
		f.reportOutcome(ctx, err)
		return nil, err
	}
	return list, nil
}

// watch begins a watch, as soon as the server takes it.
func (f *listWatcher) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	timeout := int64((1 + rand.Float64()) * f.watching.ServerTimeout.Seconds())
	options.TimeoutSeconds = &timeout
	for {
		if !f.waitForTurn(ctx) {
			return nil, ctx.Err()
		}
		started, err := f.requestWatch(ctx, options)
		f.reportOutcome(ctx, err)
		if err == nil || !isTemporary(err) || !sleep(ctx, f.nextBackoff(err)) {
			return started, err
		}
	}
}

// tell tells the outcome, unless nobody wants it any longer.
func (f *listWatcher) reportOutcome(ctx context.Context, err error) {
	if ctx.Err() == nil {
		f.report(err)
	}
}

// rest keeps two requests apart; false if the context is done before.
func (f *listWatcher) waitForTurn(ctx context.Context) bool {
	rested := sleep(ctx, time.Until(f.lastRequest.Add(f.watching.ReconnectBackoff)))
	f.lastRequest = time.Now()
	return rested
}

// failed is how long to wait after one more failure.
func (f *listWatcher) nextBackoff(err error) time.Duration {
	pause := f.watching.ReconnectBackoff
	for range f.failures {
		pause = min(2*pause, f.watching.ReconnectLimit)
	}
	f.failures++
	return max(wait.Jitter(pause, jitter), RetryAfter(err))
}

// request asks for a watch, once. An answer that does not come is given up like a
// watch that brings nothing.
func (f *listWatcher) requestWatch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	if idle := f.watching.InactivityTimeout; idle > 0 {
		defer time.AfterFunc(idle, func() { cancel(errNoAnswer) }).Stop()
	}
	request := f.withScope(f.Client.rest.Get(), f.namespace).SpecificallyVersionedParams(&options, metav1.ParameterCodec, listVersion)
	started, err := request.MaxRetries(clientGoRetries).Watch(ctx)
	if _, streams := started.(*watch.StreamWatcher); err == nil && !streams {
		err = errClosed
	}
	if err != nil {
		if errors.Is(context.Cause(ctx), errNoAnswer) {
			err = errNoAnswer
		}
		cancel(nil)
		return nil, err
	}
	f.failures = 0
	return cancellableWatch{started, cancel}, nil
}

// begunWatch is a watch with what belongs to its request.
type cancellableWatch struct {
	watch.Interface
	cancel context.CancelCauseFunc
}

// Stop ends both.
func (w cancellableWatch) Stop() {
	w.Interface.Stop()
	w.cancel(nil)
}
