package configurations

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kopf-go/kopf/pkg/model/selector"
)

var examples = selector.Resource{Group: "kopf.dev", Version: "v1", Plural: "kopfexamples"}

func hook(id string, adjust ...func(*Hook)) Hook {
	made := Hook{ID: id, Validating: true, Resource: examples}
	for _, f := range adjust {
		f(&made)
	}
	return made
}

func at(address string) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{URL: new(address), CABundle: []byte("CA")}
}

// cluster counts the writes, and can reject them.
type cluster struct {
	client.Client
	mu     sync.Mutex
	writes int
	reject error
	log    []string
	// beforePatch changes the cluster before a patch arrives.
	beforePatch func(ctx context.Context, direct client.Client, o client.Object)
}

func newCluster(objects ...client.Object) *cluster {
	c := &cluster{}
	c.Client = fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, next client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if err := c.write(); err != nil {
				return err
			}
			return next.Create(ctx, o, options...)
		},
		Patch: func(ctx context.Context, next client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			if err := c.write(); err != nil {
				return err
			}
			if c.beforePatch != nil {
				c.beforePatch(ctx, next, o)
			}
			return next.Patch(ctx, o, patch, options...)
		},
	}).Build()
	return c
}

func (c *cluster) write() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes++
	return c.reject
}

func (c *cluster) written() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes
}

func (c *cluster) rejectWith(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reject = err
}

func (c *cluster) logger() logr.Logger {
	return funcr.New(func(_, text string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.log = append(c.log, text)
	}, funcr.Options{})
}

func (c *cluster) logged() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string{}, c.log...)
}

// lead, in a synctest bubble, makes a manager the leader until the end of the test or an earlier stop.
func lead(t *testing.T, m *Manager) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var leading sync.WaitGroup
	leading.Go(func() { m.RunLeader(ctx) })
	stop = func() { cancel(); leading.Wait() }
	t.Cleanup(stop)
	synctest.Wait() // until it leads
	return stop
}
