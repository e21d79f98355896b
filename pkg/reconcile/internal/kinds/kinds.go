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

	"github.com/kopf-go/kopf/pkg/internal/sleep"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
)

// Resources finds the resources of kinds. It is safe for concurrent use.
type Resources interface {
	// Find returns the resource of a kind in one version.
	Find(ctx context.Context, kind schema.GroupVersionKind) (selector.Resource, error)
	// FindKind returns the resource of a kind in the best version.
	FindKind(ctx context.Context, kind schema.GroupKind) (selector.Resource, error)
	// FindKindAgain is like FindKind, but asks the cluster first.
	FindKindAgain(ctx context.Context, kind schema.GroupKind) (selector.Resource, error)
}

// Served finds resources among those that the cluster serves. It asks the cluster only for
// kinds that it does not know. A kind is not served only if an answer says so that is newer than the
// question: no answer, and an old one, are not a no.
type Served struct {
	Source discovery.Source

	mu      sync.Mutex
	known   discovery.Snapshot
	current *scan     // the one that is under way, or nil
	began   time.Time // when the last one began
}

// scan is one discovery, for all who ask before it begins.
type scan struct {
	done chan struct{} // closed at its end; then the other fields are set
	// began is when the cluster was asked; zero if it was not.
	began time.Time
	err   error
	// canceled reports whether the caller has ended whose context the scan had.
	canceled bool
}

// askInterval is the shortest time between two discoveries because of an unknown kind. Who asks
// earlier waits, together with others.
const askInterval = time.Second

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

// Set stores what the cluster serves, as it was discovered for other purposes, unless something
// newer is known.
func (s *Served) Set(present discovery.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !present.Asked.Before(s.known.Asked) {
		s.known = present
	}
}

// Find returns the resource of a kind in one version.
func (s *Served) Find(ctx context.Context, kind schema.GroupVersionKind) (selector.Resource, error) {
	return s.find(ctx, kind.GroupKind(), kind.GroupKind().String()+" in the version "+kind.Version, func(r selector.Resource) bool { return r.GVK() == kind })
}

// FindKind returns the resource of a kind in the best version.
func (s *Served) FindKind(ctx context.Context, kind schema.GroupKind) (selector.Resource, error) {
	return s.find(ctx, kind, kind.String(), isPreferred(kind))
}

func isPreferred(kind schema.GroupKind) func(selector.Resource) bool {
	return func(r selector.Resource) bool { return r.GVK().GroupKind() == kind && r.Preferred }
}

// FindKindAgain asks the cluster first.
func (s *Served) FindKindAgain(ctx context.Context, kind schema.GroupKind) (selector.Resource, error) {
	if err := s.ask(ctx); err != nil {
		return selector.Resource{}, err
	}
	return s.answer(kind, kind.String(), isPreferred(kind))
}

func (s *Served) find(ctx context.Context, kind schema.GroupKind, name string, matches func(selector.Resource) bool) (selector.Resource, error) {
	if r, ok := s.lookUp(matches); ok {
		return r, nil
	}
	if err := s.ask(ctx); err != nil {
		return selector.Resource{}, err
	}
	return s.answer(kind, name, matches)
}

// answer returns the resource of a kind among those that are known, or why there is none.
func (s *Served) answer(kind schema.GroupKind, name string, matches func(selector.Resource) bool) (selector.Resource, error) {
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

// ask waits for an answer of the cluster to a question that is asked now. All who ask before a scan
// begins share it.
func (s *Served) ask(ctx context.Context) error {
	question := time.Now()
	for {
		one, isNew := s.join(question)
		switch {
		case one == nil:
			return nil
		case isNew:
			s.run(ctx, one)
		}
		select {
		case <-one.done:
		case <-ctx.Done():
			return fmt.Errorf("the resources of the cluster cannot be discovered: %w", ctx.Err())
		}
		if one.err != nil && (ctx.Err() != nil || !one.canceled && !one.began.Before(question)) {
			return fmt.Errorf("the resources of the cluster cannot be discovered: %w", one.err)
		}
	}
}

// join returns the current scan, or a new one, or nil if the answer to the question is known.
func (s *Served) join(question time.Time) (one *scan, isNew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.known.Asked.Before(question) {
		return nil, false
	}
	if s.current != nil {
		return s.current, false
	}
	s.current = &scan{done: make(chan struct{})}
	return s.current, true
}

// run makes a scan, at the earliest some time after the last one.
func (s *Served) run(ctx context.Context, one *scan) {
	defer close(one.done)
	s.mu.Lock()
	pause := time.Until(s.began.Add(askInterval))
	s.mu.Unlock()
	var present discovery.Snapshot
	sleep.For(ctx, pause)
	if ctx.Err() == nil {
		one.began = time.Now()
		present, one.err = s.Source.Resources(ctx)
		present.Asked = one.began
	} else {
		one.err = ctx.Err()
	}
	one.canceled = ctx.Err() != nil
	if one.err == nil {
		s.Set(present)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = nil
	if !one.began.IsZero() {
		s.began = one.began
	}
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
