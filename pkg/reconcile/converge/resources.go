package converge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
)

// Resources finds the resources of kinds. It is safe for concurrent use.
type Resources interface {
	// Find returns the resource of a kind in one version.
	Find(ctx context.Context, kind schema.GroupVersionKind) (selector.Resource, error)
	// FindKind returns the resource of a kind in the best version.
	FindKind(ctx context.Context, kind schema.GroupKind) (selector.Resource, error)
}

// Served finds resources among those that the cluster serves. It asks the cluster only for
// kinds that it does not know.
type Served struct {
	Source discovery.Source

	mu    sync.Mutex
	known []selector.Resource
	asked time.Time // when the cluster was asked last
}

// askInterval is the shortest time between two discoveries because of an unknown kind. The
// discovery for the operator's own resources usually notices earlier that a kind is installed.
const askInterval = 10 * time.Second

// notServedError is why a kind has no resource.
type notServedError struct{ kind string }

func (e *notServedError) Error() string {
	return fmt.Sprintf("the cluster does not serve the kind %s: install its definition, or correct apiVersion and kind of the child", e.kind)
}

// isNotServed reports whether a kind has no resource, and hence no objects.
func isNotServed(err error) bool {
	var unserved *notServedError
	return errors.As(err, &unserved)
}

var _ Resources = (*Served)(nil)

// Set stores what the cluster serves, as it was discovered for other purposes.
func (s *Served) Set(present discovery.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = present.Resources
}

// Find returns the resource of a kind in one version.
func (s *Served) Find(ctx context.Context, kind schema.GroupVersionKind) (selector.Resource, error) {
	return s.find(ctx, kind.String(), func(r selector.Resource) bool { return r.GVK() == kind })
}

// FindKind returns the resource of a kind in the best version.
func (s *Served) FindKind(ctx context.Context, kind schema.GroupKind) (selector.Resource, error) {
	return s.find(ctx, kind.String(), func(r selector.Resource) bool { return r.GVK().GroupKind() == kind && r.Preferred })
}

func (s *Served) find(ctx context.Context, name string, matches func(selector.Resource) bool) (selector.Resource, error) {
	if r, ok := s.lookUp(matches); ok {
		return r, nil
	}
	if s.mayAsk() {
		present, err := s.Source.Resources(ctx)
		if err != nil {
			return selector.Resource{}, fmt.Errorf("the resources of the cluster cannot be discovered: %w", err)
		}
		s.Set(present)
	}
	if r, ok := s.lookUp(matches); ok {
		return r, nil
	}
	return selector.Resource{}, &notServedError{name}
}

func (s *Served) mayAsk() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.asked.IsZero() && time.Since(s.asked) < askInterval {
		return false
	}
	s.asked = time.Now()
	return true
}

func (s *Served) lookUp(matches func(selector.Resource) bool) (selector.Resource, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.known, matches)
	if i < 0 {
		return selector.Resource{}, false
	}
	return s.known[i], true
}
