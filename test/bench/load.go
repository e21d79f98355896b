package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

const namespace = "bench"

// load creates, updates, and deletes objects, as fast as the API server allows.
type load struct {
	api     rest.Interface
	objects int
	size    int
	clients int
}

func newLoad(config *rest.Config, o options) (*load, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath = &groupVersion, "/apis"
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	api, err := rest.RESTClientFor(config)
	return &load{api: api, objects: o.objects, size: o.size, clients: o.clients}, err
}

func (l *load) create(ctx context.Context, number int) error {
	body, err := newExample(number, l.size)
	if err != nil {
		return err
	}
	return l.about(l.api.Post()).Body(body).Do(ctx).Error()
}

func (l *load) update(ctx context.Context, number int) error {
	return l.revise(ctx, number, secondRevision)
}

// revise gives a revision to the spec of an object.
func (l *load) revise(ctx context.Context, number, revision int) error {
	body := fmt.Appendf(nil, `{"spec":{"revision":%d}}`, revision)
	return l.about(l.api.Patch(types.MergePatchType)).Name(name(number)).Body(body).Do(ctx).Error()
}

func (l *load) delete(ctx context.Context, number int) error {
	return l.about(l.api.Delete()).Name(name(number)).Do(ctx).Error()
}

func (l *load) about(request *rest.Request) *rest.Request {
	return request.Namespace(namespace).Resource(resource)
}

// each calls the function for every object, several at a time, until the first error.
func (l *load) each(ctx context.Context, objects int, do func(ctx context.Context, number int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var clients sync.WaitGroup
	for range l.clients {
		clients.Go(func() {
			for number := int(next.Add(1)); number <= objects && ctx.Err() == nil; number = int(next.Add(1)) {
				if err := do(ctx, number); err != nil {
					cancel(fmt.Errorf("the load: %w", err))
				}
			}
		})
	}
	clients.Wait()
	return context.Cause(ctx)
}

func name(number int) string { return fmt.Sprintf("example-%05d", number) }

// The revisions of the spec before and after the update.
const (
	firstRevision  = 1
	secondRevision = 2
)

// newExample returns an object as users write it, padded to the size in bytes.
func newExample(number, size int) ([]byte, error) {
	example := Example{
		TypeMeta:   metav1.TypeMeta{APIVersion: groupVersion.String(), Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Name: name(number), Namespace: namespace, Labels: map[string]string{"app": "example", "tier": "web"}},
		Spec: ExampleSpec{
			Host: name(number) + ".example.com", Image: "registry.example.com/shop/frontend:1.24.3",
			Replicas: 3, Revision: firstRevision, Enabled: true,
			Environment: map[string]string{"LOG_LEVEL": "info", "DATABASE_HOST": "postgres.example.com", "CACHE_SIZE": "128Mi"},
			Volumes:     []Volume{{"data", "10Gi"}, {"cache", "2Gi"}},
		},
	}
	text, err := json.Marshal(example)
	if err != nil {
		return nil, err
	}
	if missing := size - len(text) - len(`"description":"",`); missing > 0 {
		example.Spec.Description = strings.Repeat("lorem ipsum ", missing/12+1)[:missing]
	}
	return json.Marshal(example)
}
