package reconcile

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/watch"
)

// failing rejects all requests while it is set.
type failing struct {
	atomic.Bool

	next http.RoundTripper
}

func (f *failing) RoundTrip(request *http.Request) (*http.Response, error) {
	if f.Load() {
		return nil, context.DeadlineExceeded
	}
	return f.next.RoundTrip(request)
}

// What could not be written is written when the resource is redefined meanwhile. Otherwise,
// the handler would be called again.
func TestUpdateSurvivesARedefinition(t *testing.T) {
	calls, server := 0, &failing{}
	inCluster(t, func(r *registry.Registry) {
		r.Add(handler.Create(selector.New("kexes"), handlertest.Function(func(context.Context, *handler.Call) error {
			calls++
			server.Store(true)
			return nil
		}), handler.ID("fn")))
	}, func(t *testing.T, c *cluster) {
		c.create("kexes", "one")
		settle(10 * time.Second)
		key := c.key("kexes", "one")
		former := c.engine.resources.get(key.Resource)
		unwatched := newResource(watch.NewResource(kex, former.API), former.Changing)
		unwatched.Resource.Resource, unwatched.Name = former.Resource.Resource, former.Name
		c.engine.resources.put(unwatched)
		c.engine.enqueue(key)
		settle(10 * time.Second)
		if !c.engine.objects.has(key) || c.handled("kexes", "one") {
			t.Error("nothing is left to write")
		}
		server.Store(false)
		settle(time.Hour)
		c.expectHandled("kexes", "one")
		if calls != 1 || c.engine.objects.has(key) {
			t.Errorf("%d calls; the object is still known: %t", calls, c.engine.objects.has(key))
		}
	}, func(c *Config) {
		server.next = c.HTTP.Transport
		c.HTTP.Transport = server
	})
}
