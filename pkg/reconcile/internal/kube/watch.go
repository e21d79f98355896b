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

	"github.com/kopf-go/kopf/pkg/internal/sleep"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Errors that client-go hides: it returns an empty watch, or a done context.
var (
	errClosed   = errors.New("the API server has closed the connection")
	errNoAnswer = errors.New("the API server does not answer")
)

// listWatcher lists and watches the objects of one namespace for one reflector. It waits for
// a temporarily unavailable server itself: reflectors also wait, but silently, even when they
// must stop, and after most failures they list everything again.
type listWatcher struct {
	*Client
	namespace string
	watching  settings.Watching
	report    func(error)

	lastRequest time.Time // when a watch was requested last
	failures    int       // in a row
}

// ListWatch returns the source of an informer for the objects of one namespace, or of all
// namespaces if it is empty. It calls report with every error that prevents listing or
// watching, and with nil when a watch begins.
func (c *Client) ListWatch(namespace string, watching settings.Watching, report func(error)) cache.ListerWatcher {
	w := &listWatcher{Client: c, namespace: namespace, watching: watching, report: report}
	return &cache.ListWatch{ListWithContextFunc: w.list, WatchFuncWithContext: w.watch}
}

// list reads one page of the objects. It does not retry, because reflectors retry with
// growing delays.
func (w *listWatcher) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := w.Client.listPage(ctx, w.namespace, options)
	if err != nil {
		w.reportOutcome(ctx, err)
		return nil, err
	}
	return list, nil
}

// watch begins a watch as soon as the server accepts it.
func (w *listWatcher) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	timeout := int64((1 + rand.Float64()) * w.watching.ServerTimeout.Seconds())
	options.TimeoutSeconds = &timeout
	for {
		if !w.waitForTurn(ctx) {
			return nil, ctx.Err()
		}
		started, err := w.requestWatch(ctx, options)
		w.reportOutcome(ctx, err)
		if err == nil || !isTemporary(err) || !sleep.For(ctx, w.nextBackoff(err)) {
			return started, err
		}
	}
}

// reportOutcome reports an error or a success, unless the watch was stopped.
func (w *listWatcher) reportOutcome(ctx context.Context, err error) {
	if ctx.Err() == nil {
		w.report(err)
	}
}

// waitForTurn delays a request that follows the previous one too soon. It returns false if
// the context is done.
func (w *listWatcher) waitForTurn(ctx context.Context) bool {
	ok := sleep.For(ctx, time.Until(w.lastRequest.Add(w.watching.ReconnectBackoff)))
	w.lastRequest = time.Now()
	return ok
}

// nextBackoff returns the delay after one more failure.
func (w *listWatcher) nextBackoff(err error) time.Duration {
	pause := w.watching.ReconnectBackoff
	for range w.failures {
		pause = min(2*pause, w.watching.ReconnectLimit)
	}
	w.failures++
	return max(wait.Jitter(pause, jitter), RetryAfter(err))
}

// requestWatch requests a watch once. It gives up if there is no response within the
// inactivity timeout.
func (w *listWatcher) requestWatch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	if idle := w.watching.InactivityTimeout; idle > 0 {
		defer time.AfterFunc(idle, func() { cancel(errNoAnswer) }).Stop()
	}
	request := w.withScope(w.Client.rest.Get(), w.namespace).SpecificallyVersionedParams(&options, metav1.ParameterCodec, listVersion)
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
	w.failures = 0
	return cancellableWatch{started, cancel}, nil
}

// cancellableWatch is a watch with the context of its request.
type cancellableWatch struct {
	watch.Interface
	cancel context.CancelCauseFunc
}

// Stop ends both.
func (w cancellableWatch) Stop() {
	w.Interface.Stop()
	w.cancel(nil)
}
