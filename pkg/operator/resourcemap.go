package operator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/webhook"
)

// newWebhook makes what answers the reviews of an operator.
func newWebhook(engine *reconcile.Engine, handlers registry.Handlers, served *catalogue) http.Handler {
	return webhook.New(webhook.Options{
		Handlers: handlers, Resources: served.find,
		Logger: engine.Logger.WithName("admission"), Client: engine.Client,
		Context: func(ctx context.Context, call handler.CallContext) context.Context {
			return engine.Context(ctx, reconcile.About{Body: func() *object.Body { return call.Body }, Resource: *call.Resource, Logger: call.Logger})
		},
		Memo: engine.Memo,
		CheckReady: func(context.Context) error {
			select {
			case <-engine.Ready():
				return nil
			default:
				return errors.New("it does not know all objects yet")
			}
		},
	})
}

// reviewsPath is where the webhook server of a manager answers the reviews, beside
// its other webhooks.
const reviewsPath = "/kopf"

// mount lets the manager's webhook server answer the reviews.
func mount(mgr manager.Manager, reviews http.Handler) error {
	err := handler.WithRecover(func() error { // the server panics over a path that it has already
		mgr.GetWebhookServer().Register(reviewsPath+"/", http.StripPrefix(reviewsPath, reviews))
		return nil
	})
	if err != nil {
		return fmt.Errorf("the admission handlers cannot be served at %s by the webhook server of the manager, "+
			"most likely because another operator is: give one of them a Settings.Admission.Server: %w", reviewsPath, err)
	}
	return nil
}

// reviews answer admission reviews as soon as there is somebody who can. They are
// mounted before anything is started.
type reviews struct{ ready atomic.Pointer[http.Handler] }

// ServeHTTP refuses what comes too early; the API server does then what the webhook
// says about failures.
func (r *reviews) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if handler := r.ready.Load(); handler != nil {
		(*handler).ServeHTTP(w, request)
		return
	}
	http.Error(w, "the operator has yet to start", http.StatusServiceUnavailable)
}

// catalogue is what the cluster serves, as far as it is known. It is safe for
// concurrent use.
type catalogue struct {
	mu        sync.RWMutex
	resources map[schema.GroupVersionResource]selector.Resource
}

// update takes what was found. What cannot be seen now is taken to be there still.
func (c *catalogue) update(found discovery.Snapshot) {
	resources := make(map[schema.GroupVersionResource]selector.Resource, len(found.Resources))
	c.mu.Lock()
	defer c.mu.Unlock()
	for gvr, known := range c.resources {
		if _, unseen := found.Failed[gvr.GroupVersion()]; unseen {
			resources[gvr] = known
		}
	}
	for _, resource := range found.Resources {
		resources[resource.GVR()] = resource
	}
	c.resources = resources
}

func (c *catalogue) find(gvr schema.GroupVersionResource) (selector.Resource, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	resource, found := c.resources[gvr]
	return resource, found
}

// all are the resources in the order of their names.
func (c *catalogue) all() []selector.Resource {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.SortedFunc(maps.Values(c.resources), func(a, b selector.Resource) int {
		return strings.Compare(a.String(), b.String())
	})
}
