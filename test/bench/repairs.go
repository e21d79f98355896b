package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// repairs breaks children, and watches how the operator repairs them.
type repairs struct {
	maps  typedcorev1.ConfigMapInterface
	watch watch.Interface

	mu      sync.Mutex
	broken  map[string]bool // by name: whether the change was seen already
	missing int
	done    chan struct{}
	ended   chan struct{}
	breaks  int
}

func watchRepairs(ctx context.Context, maps typedcorev1.ConfigMapInterface) (*repairs, error) {
	list, err := maps.List(ctx, metav1.ListOptions{LabelSelector: childLabel, Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("listing the children: %w", err)
	}
	// The API server ends watches that cannot keep up.
	watching, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = childLabel
			return maps.Watch(ctx, options)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watching the children: %w", err)
	}
	r := &repairs{maps: maps, watch: watching, broken: map[string]bool{}, ended: make(chan struct{})}
	go r.look()
	return r, nil
}

func (r *repairs) stop() { r.watch.Stop() }

func (r *repairs) look() {
	defer close(r.ended)
	for event := range r.watch.ResultChan() {
		if child, ok := event.Object.(*corev1.ConfigMap); ok {
			r.see(child.Name, child.Data["color"] == wantedColor)
		}
	}
}

func (r *repairs) see(name string, asWanted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen, expected := r.broken[name]
	switch {
	case !expected:
	case !asWanted:
		r.broken[name] = true
	case seen:
		delete(r.broken, name)
		if r.missing--; r.missing == 0 {
			close(r.done)
		}
	}
}

// expect starts to wait for so many repairs.
func (r *repairs) expect(children int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.missing, r.done = children, make(chan struct{})
}

// breakChild changes a field of a child of an object, as another client does.
func (r *repairs) breakChild(ctx context.Context, number int) error {
	r.mu.Lock()
	r.broken[name(number)] = false
	r.breaks++
	text := fmt.Appendf(nil, `{"data":{"color":"red %d"}}`, r.breaks)
	r.mu.Unlock()
	_, err := r.maps.Patch(ctx, name(number), types.MergePatchType, text, metav1.PatchOptions{FieldManager: "another"})
	return err
}

// wait returns when all children are repaired.
func (r *repairs) wait(ctx context.Context) error {
	select {
	case <-r.done:
		return nil
	case <-r.ended:
		return errors.New("the watch of the children ended early")
	case <-ctx.Done():
		r.mu.Lock()
		defer r.mu.Unlock()
		return fmt.Errorf("%d children were not repaired: %w", r.missing, context.Cause(ctx))
	}
}

// reaction is the time from the change of a child until its function is called and it is repaired.
type reaction struct{ called, repaired time.Duration }

// react measures one change of a child.
func (m *measurement) react(ctx context.Context, number int) (reaction, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, err := m.operator.ask(commandCall + " " + name(number)); err != nil {
		return reaction{}, err
	}
	if err := pause(ctx, changesBetween); err != nil {
		return reaction{}, err
	}
	m.repairs.expect(1)
	began := time.Now()
	if err := m.repairs.breakChild(ctx, number); err != nil {
		return reaction{}, err
	}
	if err := m.repairs.wait(ctx); err != nil {
		return reaction{}, err
	}
	repaired := time.Since(began)
	after, err := m.operator.ask(commandSample)
	return reaction{time.Unix(0, after.Tallied.Called).Sub(began.Round(0)), repaired}, err
}
