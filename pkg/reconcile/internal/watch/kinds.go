package watch

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

// Kinds finds the resources of kinds: a handler names the kinds of the children that it returns, and
// requests need resources. It looks among the resources that the cluster is known to serve, and asks
// the cluster only for kinds that it does not find there. A kind is not served only if an answer says
// so that is newer than the question: no answer, and an old one, are not a no. It is safe for
// concurrent use.
type Kinds struct {
	Source discovery.Source

	mu      sync.Mutex
	known   discovery.Snapshot
	current *scan     // the one that is under way, or nil
	began   time.Time // when the last one began
}

// scan is one discovery, for all callers that ask before it begins.
type scan struct {
	done chan struct{} // closed at its end; then the other fields are set
	// began is when the cluster was asked; zero if it was not.
	began time.Time
	err   error
	// canceled reports whether the caller has ended whose context the scan had.
	canceled bool
}

// askInterval is the shortest time between two discoveries because of an unknown kind. A caller
// that asks earlier waits, together with others.
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

// Find returns the resource of a kind in one version.
func (k *Kinds) Find(ctx context.Context, kind schema.GroupVersionKind) (selector.Resource, error) {
	q := question{kind.GroupKind(), kind.GroupKind().String() + " in the version " + kind.Version, func(r selector.Resource) bool { return r.GVK() == kind }}
	if r, ok := k.lookUp(q); ok {
		return r, nil
	}
	return k.askFor(ctx, q)
}

// FindKind returns the resource of a kind in the version that the cluster prefers.
func (k *Kinds) FindKind(ctx context.Context, kind schema.GroupKind) (selector.Resource, error) {
	if r, ok := k.lookUp(preferred(kind)); ok {
		return r, nil
	}
	return k.askFor(ctx, preferred(kind))
}

// FindKindAgain is like FindKind, but asks the cluster first.
func (k *Kinds) FindKindAgain(ctx context.Context, kind schema.GroupKind) (selector.Resource, error) {
	return k.askFor(ctx, preferred(kind))
}

// question is which resource a kind has.
type question struct {
	kind    schema.GroupKind
	name    string // of the kind, in errors
	matches func(selector.Resource) bool
}

func preferred(kind schema.GroupKind) question {
	return question{kind, kind.String(), func(r selector.Resource) bool { return r.GVK().GroupKind() == kind && r.Preferred }}
}

// set stores what the cluster serves, unless something newer is known.
func (k *Kinds) set(present discovery.Snapshot) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !present.Asked.Before(k.known.Asked) {
		k.known = present
	}
}

func (k *Kinds) lookUp(q question) (selector.Resource, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.known.Resources, q.matches)
	if i < 0 {
		return selector.Resource{}, false
	}
	return k.known.Resources[i], true
}

// askFor asks the cluster, and returns the resource of a kind, or why there is none: it is not served,
// or not known now.
func (k *Kinds) askFor(ctx context.Context, q question) (selector.Resource, error) {
	if err := k.ask(ctx); err != nil {
		return selector.Resource{}, fmt.Errorf("the resources of the cluster cannot be discovered: %w", err)
	}
	if r, ok := k.lookUp(q); ok {
		return r, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for failed, err := range k.known.Failed {
		if failed.Group == q.kind.Group {
			return selector.Resource{}, fmt.Errorf("the kind %s is not known now, because its API group cannot be discovered: %w", q.name, err)
		}
	}
	return selector.Resource{}, &notServedError{q.name}
}

// ask waits for an answer of the cluster that is newer than this call. All callers that ask before a
// scan begins share it.
func (k *Kinds) ask(ctx context.Context) error {
	asked := time.Now()
	for {
		one, isNew := k.join(asked)
		if one == nil {
			return nil
		}
		if isNew {
			k.run(ctx, one)
		}
		select {
		case <-one.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if one.err != nil && (ctx.Err() != nil || !one.canceled && !one.began.Before(asked)) {
			return one.err
		}
	}
}

// join returns the current scan, or a new one, or nil if there is an answer that is newer than a time.
func (k *Kinds) join(asked time.Time) (one *scan, isNew bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.known.Asked.Before(asked) {
		return nil, false
	}
	if k.current != nil {
		return k.current, false
	}
	k.current = &scan{done: make(chan struct{})}
	return k.current, true
}

// run makes a scan, at the earliest some time after the last one.
func (k *Kinds) run(ctx context.Context, one *scan) {
	defer close(one.done)
	k.mu.Lock()
	pause := time.Until(k.began.Add(askInterval))
	k.mu.Unlock()
	var present discovery.Snapshot
	sleep.For(ctx, pause)
	if ctx.Err() == nil {
		one.began = time.Now()
		present, one.err = k.Source.Resources(ctx)
		present.Asked = one.began
	} else {
		one.err = ctx.Err()
	}
	one.canceled = ctx.Err() != nil
	if one.err == nil {
		k.set(present)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.current = nil
	if !one.began.IsZero() {
		k.began = one.began
	}
}
