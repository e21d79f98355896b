package metacontroller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/serve/document"
)

// Options are those of a controller.
type Options struct {
	// Output limits the answer of a hook, in bytes.
	Output int
	// Enter is called before a hook, and returns what is called after it. It waits while no call may begin.
	Enter func(context.Context) (leave func(), err error)
}

// Controller runs a controller of Metacontroller. It is safe for concurrent use.
type Controller struct {
	declared *document.Controller
	options  Options
	// finalizer is Metacontroller's, so that it can take over.
	finalizer string

	sync, finalize, customize *hook

	calls   chan struct{} // a place for each
	orphans orphans
	watches watches

	mu      sync.Mutex
	parents map[types.UID]*parent
}

// maxCalls is how many hooks of a controller are called at the same time.
const maxCalls = 20

// New returns a controller.
func New(declared *document.Controller, options Options) (*Controller, error) {
	c := &Controller{
		declared: declared, options: options, finalizer: "metacontroller.io/" + strings.ToLower(declared.Kind) + "-" + declared.Name,
		calls: make(chan struct{}, maxCalls), parents: map[types.UID]*parent{},
	}
	var errs [3]error
	c.sync, errs[0] = newHook(declared.Sync, options.Output)
	c.finalize, errs[1] = newHook(declared.Finalize, options.Output)
	c.customize, errs[2] = newHook(declared.Customize, options.Output)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("%s: %s has a hook that cannot be called: %w", declared.Place, declared, err)
	}
	return c, nil
}

// Close closes idle connections.
func (c *Controller) Close() {
	c.sync.close()
	c.finalize.close()
	c.customize.close()
}

// Declare declares the handlers of the controller.
func (c *Controller) Declare(r *kopf.Registry) {
	id := kopf.ID(c.declared.Name)
	place := kopf.DeclaredAt(c.declared.Place)
	for _, rule := range c.declared.Parents {
		resource := kopf.Resource(rule.APIVersion, rule.Resource)
		options := []kopf.BackgroundOption{id, place, kopf.Deleted(), kopf.When(func(a kopf.Arguments) bool { return c.isConcerned(rule, a.Body()) })}
		for _, child := range c.declared.Children {
			options = append(options, kopf.WatchChildren(kopf.Resource(child.APIVersion, child.Resource)))
		}
		r.Daemon(resource, c.run, options...)
		r.OnEvent(resource, c.observeParent, kopf.ID(c.declared.Name+"-changes"), place)
	}
	for _, hook := range []*document.Hook{c.declared.Sync, c.declared.Finalize, c.declared.Customize} {
		if hook == nil || hook.Connection == nil {
			continue
		}
		for _, ref := range hook.Connection.References() {
			resource := kopf.Resource("v1", strings.ToLower(ref.Kind)+"s")
			r.Declarations().AddNeed(registry.Need{Selector: resource, Verbs: []string{"get"}, DeclaredAt: c.declared.Place})
		}
	}
	for i, child := range c.declared.Children {
		resource := kopf.Resource(child.APIVersion, child.Resource)
		r.Declarations().AddNeed(registry.Need{Selector: resource, Verbs: []string{"get", "create", "update", "delete"}, DeclaredAt: c.declared.Place})
		index := kopf.ID(c.declared.Name + "-orphans")
		switch {
		case c.declared.Kind == document.Decorator: // does not adopt
		case i == 0:
			c.orphans.index = kopf.NewIndex(r, resource, c.indexOrphan, index, place)
		default:
			kopf.FillIndex(r, c.orphans.index, resource, c.indexOrphan, index, place)
		}
	}
}

// isConcerned reports whether the controller has something to do for an object: one that the rule selects, or one that it
// must finalize.
func (c *Controller) isConcerned(rule document.ParentRule, body *object.Body) bool {
	return slices.Contains(body.Finalizers(), c.finalizer) || !body.Deleting() && isSelected(rule, body)
}

func isSelected(rule document.ParentRule, body *object.Body) bool {
	return rule.Labels.Matches(labels.Set(body.Labels())) && rule.Annotations.Matches(labels.Set(body.Annotations()))
}

// ruleOf returns the rule of a resource.
func (c *Controller) ruleOf(resource selector.Resource) document.ParentRule {
	for _, rule := range c.declared.Parents {
		if kopf.Resource(rule.APIVersion, rule.Resource).Match(resource) {
			return rule
		}
	}
	return c.declared.Parents[0]
}

// parent is an object with a daemon.
type parent struct {
	uid       types.UID
	namespace string
	rule      document.ParentRule
	// changed has a value if the parent, an orphan, or a related object has changed.
	changed chan struct{}
	related relations

	mu sync.Mutex
	// seen is what was synchronized last.
	seen *object.Body
	// selector is that of the children, for orphans.
	selector labels.Selector
}

func (p *parent) wakeUp() {
	select {
	case p.changed <- struct{}{}:
	default: // it has not looked since the last change
	}
}

// look notes which version is synchronized.
func (p *parent) look(body *object.Body) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = body
}

// hasChanged reports whether a version must be synchronized.
func (p *parent) hasChanged(now *object.Body) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.seen == nil || now.ResourceVersion() == p.seen.ResourceVersion():
		return false // it is looked at now, or was
	case p.rule.IgnoreStatusChanges:
		return now.Deleting() || now.Generation() != p.seen.Generation() ||
			!maps.Equal(now.Labels(), p.seen.Labels()) || !maps.Equal(now.Annotations(), p.seen.Annotations())
	default:
		return true
	}
}

// canAdopt reports whether an orphan can become a child. The selector is unknown until the first synchronization.
func (p *parent) canAdopt(o orphan) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return (p.namespace == "" || p.namespace == o.Namespace) && (p.selector == nil || p.selector.Matches(o.labels))
}

// observeParent wakes the daemon of a parent.
func (c *Controller) observeParent(_ context.Context, e *kopf.WatchEvent) error {
	c.mu.Lock()
	p := c.parents[e.UID()]
	c.mu.Unlock()
	if p != nil && p.hasChanged(e.Body()) {
		p.wakeUp()
	}
	return nil
}

func (c *Controller) begin(t *kopf.Task) *parent {
	p := &parent{uid: t.UID(), namespace: t.Namespace(), rule: c.ruleOf(t.Resource()), changed: make(chan struct{}, 1)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parents[p.uid] = p
	return p
}

func (c *Controller) end(p *parent) {
	c.watches.leave(p.related.all)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parents[p.uid] == p {
		delete(c.parents, p.uid)
	}
}

// retries are the pauses after errors. A change ends them.
func retries() backoff.Backoff { return backoff.Exponential(100*time.Millisecond, time.Minute) }

// forever is a pause that only a change ends.
const forever = time.Duration(math.MaxInt64)

// run is the daemon of a parent.
func (c *Controller) run(ctx context.Context, t *kopf.Task) error {
	p := c.begin(t)
	defer c.end(p)
	for failures := 0; ; {
		forget(p.changed)
		forget(t.Changed())
		pause, err := c.synchronize(ctx, t, p)
		var busy *busyError
		switch {
		case t.StopReason() != 0 || ctx.Err() != nil:
			return nil
		case err == nil:
			failures = 0
		case errors.As(err, &busy):
			kopf.LogOnly(t.Logger()).Info("The hook is busy.", "after", busy.after.String())
			pause = busy.after
		default:
			pause = retries().Delay(failures)
			failures++
			kopf.LogOnly(t.Logger()).Error(err, "The synchronization has failed.", "again", pause.String())
			kopf.Warn(ctx, "SyncError", "Sync error: "+err.Error())
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-p.changed:
		case <-t.Changed():
		case <-ctx.Done():
		case <-t.Stopped():
		}
		timer.Stop()
		if t.StopReason() != 0 || ctx.Err() != nil {
			return nil
		}
	}
}

// forget takes a value from a channel if there is one. It is nil without children.
func forget(changed <-chan struct{}) {
	select {
	case <-changed:
	default:
	}
}
