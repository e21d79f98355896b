package metacontroller

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/serve/document"
)

// synchronize asks the hook what must be, and makes it so. It returns after which time the hook must be called again
// without a change.
func (c *Controller) synchronize(ctx context.Context, t *kopf.Task, p *parent) (time.Duration, error) {
	calling, endCalls := untilStopped(ctx, t)
	defer endCalls()
	body := t.Body()
	p.look(body)
	if !c.isConcerned(p.rule, body) {
		return forever, nil // the daemon is stopped
	}
	hasFinalizer := slices.Contains(body.Finalizers(), c.finalizer)
	if needsFinalizer := c.finalize != nil; hasFinalizer != needsFinalizer && !(needsFinalizer && body.Deleting()) {
		c.setFinalizer(t, needsFinalizer)
		if err := t.Write(ctx); err != nil {
			return 0, err
		}
		hasFinalizer = needsFinalizer
		body = t.Body()
		p.look(body)
		if !c.isConcerned(p.rule, body) {
			return forever, nil
		}
	}
	parent := &unstructured.Unstructured{Object: body.Raw()}
	finalizing := hasFinalizer && (body.Deleting() || !isSelected(p.rule, body))

	f, err := c.familyOf(t, p, parent)
	if err != nil {
		return 0, err
	}
	observed, err := f.observe(ctx, t)
	if err != nil {
		return 0, err
	}
	if err := c.relate(calling, t, p, parent); err != nil {
		return 0, err
	}
	a, err := c.ask(calling, p, f, observed, finalizing)
	if err != nil {
		return 0, err
	}
	wanted, err := f.wanted(a.Children)
	if err != nil {
		return 0, err
	}

	// As for Metacontroller: a composite that is finalized leaves its children to the garbage collector, which is also left
	// alone while it deletes, or orphans, the children itself.
	isFinal := finalizing && a.Finalized
	isCollected := slices.ContainsFunc(parent.GetFinalizers(), func(name string) bool {
		return name == metav1.FinalizerDeleteDependents || name == metav1.FinalizerOrphanDependents
	})
	var failure error
	if !body.Deleting() || !isCollected && !(isFinal && c.declared.Kind == document.Composite) {
		failure = f.manage(ctx, t, observed, wanted)
	}
	c.edit(t, body, a)
	if isFinal && failure == nil {
		c.setFinalizer(t, false)
	}
	if err := t.Write(ctx); err != nil && !errors.Is(err, kopf.ErrGone) {
		failure = errors.Join(failure, err)
	}
	return c.pauseAfter(a), failure
}

// setFinalizer adds or removes the finalizer with the next write.
func (c *Controller) setFinalizer(t *kopf.Task, needed bool) {
	t.Patch().Apply(func(obj *unstructured.Unstructured) error {
		switch {
		case !needed:
			controllerutil.RemoveFinalizer(obj, c.finalizer)
		case obj.GetDeletionTimestamp() == nil: // too late otherwise
			controllerutil.AddFinalizer(obj, c.finalizer)
		}
		return nil
	})
}

// familyOf returns the children of a parent.
func (c *Controller) familyOf(t *kopf.Task, p *parent, object *unstructured.Unstructured) (*family, error) {
	kinds, err := c.childKinds(t.Client())
	if err != nil {
		return nil, err
	}
	selector, err := c.selectorOf(object)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.selector = selector
	return &family{Controller: c, client: t.Client(), parent: object, kinds: kinds, selector: selector}, nil
}

// ask calls the hook for a parent.
func (c *Controller) ask(ctx context.Context, p *parent, f *family, observed map[childKey]*unstructured.Unstructured, finalizing bool) (*answer, error) {
	h := c.sync
	if finalizing {
		h = c.finalize
	}
	names := naming{h.Uniform, p.namespace}
	children := groups{}
	for _, kind := range f.kinds {
		children[groupOf(kind.GroupVersionKind)] = map[string]any{}
	}
	for child := range maps.Values(observed) {
		names.add(children, child)
	}
	related := groups{}
	if err := p.related.objects(ctx, related, names); err != nil {
		return nil, err
	}
	var request any
	composite := c.declared.Kind == document.Composite
	if composite {
		request = &compositeRequest{c.declared.Object, f.parent.Object, children, related, finalizing}
	} else {
		request = &decoratorRequest{c.declared.Object, f.parent.Object, children, related, finalizing}
	}
	data, err := c.call(ctx, f.client, h, request)
	if err != nil {
		return nil, err
	}
	return parseAnswer(data, composite, h.Strict)
}

// untilStopped returns a context that also ends when the daemon must stop: for what it waits for, and not for what it writes.
func untilStopped(ctx context.Context, t *kopf.Task) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-t.Stopped():
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// call calls a hook when there is a place for it.
func (c *Controller) call(ctx context.Context, api client.Client, h *hook, request any) ([]byte, error) {
	leave, err := c.options.Enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	select {
	case c.calls <- struct{}{}:
		defer func() { <-c.calls }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return h.call(ctx, api, request)
}

// edit collects how the answer changes the parent.
func (c *Controller) edit(t *kopf.Task, body *object.Body, a *answer) {
	status := a.Status
	if c.declared.Kind == document.Composite {
		if status == nil {
			status = map[string]any{}
		}
		status["observedGeneration"] = body.Generation()
	}
	if status != nil && !object.Equal(body.Raw()["status"], status) {
		t.Patch().Set(status, "status")
	}
	editTexts(t, "labels", body.Labels(), a.Labels)
	editTexts(t, "annotations", body.Annotations(), a.Annotations)
}

// editTexts collects changes of labels or annotations.
func editTexts(t *kopf.Task, field string, now map[string]string, wanted map[string]*string) {
	for key, value := range wanted {
		switch is, exists := now[key]; {
		case value == nil && exists:
			t.Patch().Remove("metadata", field, key)
		case value != nil && (!exists || is != *value):
			t.Patch().Set(*value, "metadata", field, key)
		}
	}
}

// pauseAfter returns the pause that an answer asks for, or that of the controller.
func (c *Controller) pauseAfter(a *answer) time.Duration {
	pause := forever
	if c.declared.ResyncPeriod > 0 {
		pause = c.declared.ResyncPeriod
	}
	if a.ResyncAfterSeconds > 0 {
		pause = min(pause, time.Duration(min(a.ResyncAfterSeconds, forever.Seconds())*float64(time.Second)))
	}
	return pause
}
