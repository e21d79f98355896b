// Package kinds finds the resources of kinds: a handler names the kinds of the children that it
// returns, and requests need resources.
//
// This package carries no compatibility promise.
package kinds

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
	// FindKindAgain is like FindKind, but asks the cluster first, unless it was asked just now.
	FindKindAgain(ctx context.Context, kind schema.GroupKind) (selector.Resource, error)
}

// Served finds resources among those that the cluster serves. It asks the cluster only for
// kinds that it does not know.
type Served struct {
	Source discovery.Source

	mu    sync.Mutex
	known discovery.Snapshot
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

// IsNotServed reports whether a kind has no resource, and hence no objects.
func IsNotServed(err error) bool {
	var unserved *notServedError
	return errors.As(err, &unserved)
}

var _ Resources = (*Served)(nil)

// Set stores what the cluster serves, as it was discovered for other purposes.
func (s *Served) Set(present discovery.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = present
}

// Find returns the resource of a kind in one version.
func (s *Served) Find(ctx context.Context, kind schema.GroupVersionKind) (selector.Resource, error) {
	return s.find(ctx, kind.GroupKind(), kind.GroupKind().String()+" in the version "+kind.Version, func(r selector.Resource) bool { return r.GVK() == kind })
}

// FindKind returns the resource of a kind in the best version.
func (s *Served) FindKind(ctx context.Context, kind schema.GroupKind) (selector.Resource, error) {
	return s.find(ctx, kind, kind.String(), func(r selector.Resource) bool { return r.GVK().GroupKind() == kind && r.Preferred })
}

// FindKindAgain asks the cluster first, unless it was asked just now.
func (s *Served) FindKindAgain(ctx context.Context, kind schema.GroupKind) (selector.Resource, error) {
	if err := s.ask(ctx); err != nil {
		return selector.Resource{}, err
	}
	return s.FindKind(ctx, kind)
}

func (s *Served) find(ctx context.Context, kind schema.GroupKind, name string, matches func(selector.Resource) bool) (selector.Resource, error) {
	if r, ok := s.lookUp(matches); ok {
		return r, nil
	}
	if err := s.ask(ctx); err != nil {
		return selector.Resource{}, err
	}
	if r, ok := s.lookUp(matches); ok {
		return r, nil
	}
	return selector.Resource{}, s.whyMissing(kind, name)
}

// whyMissing returns why there is no resource: it is not served, or not known now.
func (s *Served) whyMissing(kind schema.GroupKind, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for failed, err := range s.known.Failed {
		if failed.Group == kind.Group {
			return fmt.Errorf("the kind %s is not known now, because its API group cannot be discovered: %w", name, err)
		}
	}
	return &notServedError{name}
}

// ask asks the cluster, unless it was asked just now.
func (s *Served) ask(ctx context.Context) error {
	if !s.mayAsk() {
		return nil
	}
	present, err := s.Source.Resources(ctx)
	if err != nil {
		return fmt.Errorf("the resources of the cluster cannot be discovered: %w", err)
	}
	s.Set(present)
	return nil
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
	i := slices.IndexFunc(s.known.Resources, matches)
	if i < 0 {
		return selector.Resource{}, false
	}
	return s.known.Resources[i], true
}
