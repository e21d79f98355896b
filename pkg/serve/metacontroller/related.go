package metacontroller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// relatedRule selects related objects, as a customize hook returns it.
type relatedRule struct {
	APIVersion        string                `json:"apiVersion"`
	Resource          string                `json:"resource"`
	LabelSelector     *metav1.LabelSelector `json:"labelSelector"`
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
	Namespace         string                `json:"namespace"`
	Names             []string              `json:"names"`
}

// decodeSelector returns the selector of a JSON value.
func decodeSelector(of any) (labels.Selector, error) {
	data, err := json.Marshal(of)
	if err != nil {
		return nil, fmt.Errorf("it cannot be encoded: %w", err)
	}
	declared := &metav1.LabelSelector{}
	if err := json.Unmarshal(data, declared); err != nil {
		return nil, fmt.Errorf("it cannot be decoded: %w", err)
	}
	return selectorFrom(declared)
}

// selectorFrom returns a selector, or one of everything for nil.
func selectorFrom(declared *metav1.LabelSelector) (labels.Selector, error) {
	if declared == nil {
		return labels.Everything(), nil
	}
	selector, err := metav1.LabelSelectorAsSelector(declared)
	if err != nil {
		return nil, fmt.Errorf("the selector is not valid: %w", err)
	}
	return selector, nil
}

// relation is a rule of one parent, with the objects that it selects from.
type relation struct {
	kind   schema.GroupVersionKind
	labels labels.Selector
	names  []string
	from   *watched
	// namespaces selects from the namespaces of in. It is nil if the rule does not.
	namespaces labels.Selector
	in         *watched
}

// relations are the rules of a parent, and for which version of it the customize hook has returned them.
type relations struct {
	version string
	all     []*relation
}

// scopeOf returns the namespace that a rule selects from: all, if it is empty.
func (r *relatedRule) scopeOf(kind childKind, parent string, uniform bool) (string, error) {
	limited := !uniform && parent != "" && kind.namespaced // to the namespace of the parent
	switch {
	case len(r.Names) > 0 && (r.LabelSelector != nil || r.NamespaceSelector != nil):
		return "", errors.New("it has names and a selector: leave one of them out")
	case r.Namespace != "" && r.NamespaceSelector != nil:
		return "", errors.New("it has a namespace and a namespaceSelector: leave one of them out")
	case r.NamespaceSelector != nil && !kind.namespaced:
		return "", errors.New("it has a namespaceSelector, but the resource is in no namespace")
	case limited && r.NamespaceSelector != nil:
		return "", errors.New("it has a namespaceSelector, but the parent is in a namespace: use version v2 of the hook")
	case limited && r.Namespace != "" && r.Namespace != parent:
		return "", fmt.Errorf("it is about the namespace %s, but the parent is in %s: use version v2 of the hook", r.Namespace, parent)
	case limited:
		return parent, nil
	case !kind.namespaced:
		return "", nil
	default:
		return r.Namespace, nil
	}
}

// relate asks the customize hook which objects are related to a parent, unless it has answered for this generation.
func (c *Controller) relate(ctx context.Context, t *kopf.Task, p *parent, object *unstructured.Unstructured) error {
	version := fmt.Sprint(object.GetGeneration())
	if object.GetGeneration() == 0 {
		version = object.GetResourceVersion() // it has no generations
	}
	if c.customize == nil || p.related.version == version {
		return nil
	}
	data, err := c.call(ctx, t.Client(), c.customize, &customizeRequest{Controller: c.declared.Object, Parent: object.Object})
	if err != nil {
		return err
	}
	var answered struct {
		RelatedResources []*relatedRule `json:"relatedResources"`
	}
	if err := parse(data, &answered, c.customize.Strict); err != nil {
		return err
	}
	next := relations{version: version}
	for i, rule := range answered.RelatedResources {
		one, err := c.newRelation(t.Client(), p, rule)
		if err != nil {
			c.watches.leave(next.all)
			return fmt.Errorf("the related resource %d of the customize hook cannot be used: %w", i+1, err)
		}
		next.all = append(next.all, one)
	}
	before := p.related
	p.related = next
	c.watches.leave(before.all) // at last, so that no watch begins again
	return nil
}

func (c *Controller) newRelation(api client.Client, p *parent, rule *relatedRule) (*relation, error) {
	if rule == nil {
		return nil, errors.New("it is empty")
	}
	kind, err := kindOf(api, rule.APIVersion, rule.Resource)
	if err != nil {
		return nil, err
	}
	namespace, err := rule.scopeOf(kind, p.namespace, c.customize.Uniform)
	if err != nil {
		return nil, err
	}
	one := &relation{kind: kind.GroupVersionKind, names: rule.Names}
	one.labels, err = selectorFrom(rule.LabelSelector)
	if err != nil {
		return nil, err
	}
	if rule.NamespaceSelector != nil {
		one.namespaces, err = selectorFrom(rule.NamespaceSelector)
		if err != nil {
			return nil, err
		}
	}
	watching, ok := api.(client.WithWatch)
	if !ok {
		return nil, errors.New("the client of the operator cannot watch")
	}
	one.from = c.watches.join(watching, watchKey{kind.GroupVersionKind, namespace}, one, p)
	if one.namespaces != nil {
		one.in = c.watches.join(watching, watchKey{schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, ""}, one, p)
	}
	return one, nil
}

// objects adds the related objects of a parent to groups. It waits until they are known.
func (rs *relations) objects(ctx context.Context, to groups, names naming) error {
	for _, r := range rs.all {
		if err := r.from.wait(ctx); err != nil {
			return err
		}
		if r.in != nil {
			if err := r.in.wait(ctx); err != nil {
				return err
			}
		}
		if group := groupOf(r.kind); to[group] == nil {
			to[group] = map[string]any{}
		}
		for _, item := range r.from.store.List() {
			if obj, ok := item.(*unstructured.Unstructured); ok && r.selects(obj) {
				names.add(to, obj)
			}
		}
	}
	return nil
}

// selects reports whether an object is a related one.
func (r *relation) selects(obj *unstructured.Unstructured) bool {
	if len(r.names) > 0 && !slices.Contains(r.names, obj.GetName()) || !r.labels.Matches(labels.Set(obj.GetLabels())) {
		return false
	}
	if r.in == nil {
		return true
	}
	item, exists, err := r.in.store.GetByKey(obj.GetNamespace())
	namespace, ok := item.(*unstructured.Unstructured)
	return err == nil && exists && ok && r.namespaces.Matches(labels.Set(namespace.GetLabels()))
}

// concerns reports whether a change of a watched object changes the related objects.
func (r *relation) concerns(w *watched, obj *unstructured.Unstructured) bool {
	if w == r.in {
		return r.namespaces.Matches(labels.Set(obj.GetLabels()))
	}
	return r.selects(obj)
}

// watches are those of related objects. Parents share them, and each of them ends with its last relation. It is safe for
// concurrent use.
type watches struct {
	mu sync.Mutex
	of map[watchKey]*watched
}

type watchKey struct {
	schema.GroupVersionKind

	namespace string
}

// watched are the objects of one kind, in one namespace or in all.
type watched struct {
	key       watchKey
	store     cache.Store
	hasSynced func() bool
	stop      context.CancelFunc

	mu        sync.Mutex
	relations map[*relation]*parent
	err       error // of the last list
}

// join returns what a relation needs to watch.
func (ws *watches) join(c client.WithWatch, key watchKey, r *relation, p *parent) *watched {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w := ws.of[key]
	if w == nil {
		w = newWatched(c, key)
		if ws.of == nil {
			ws.of = map[watchKey]*watched{}
		}
		ws.of[key] = w
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.relations[r] = p
	return w
}

// leave is the opposite of join.
func (ws *watches) leave(all []*relation) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, r := range all {
		for _, w := range []*watched{r.from, r.in} {
			if w != nil && w.forget(r) {
				w.stop()
				delete(ws.of, w.key)
			}
		}
	}
}

// forget removes a relation, and reports whether it was the last one.
func (w *watched) forget(r *relation) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.relations, r)
	return len(w.relations) == 0
}

func newWatched(c client.WithWatch, key watchKey) *watched {
	w := &watched{key: key, relations: map[*relation]*parent{}}
	ctx, stop := context.WithCancel(context.Background()) // the watch is for many calls, and ends with the last relation
	w.stop = stop
	newList := func() *unstructured.UnstructuredList {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(key.GroupVersionKind.GroupVersion().WithKind(key.Kind + "List"))
		return list
	}
	silent := logr.Discard() // the error of a list is that of the synchronization which needs it
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		Logger: &silent, ObjectType: &unstructured.Unstructured{},
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				list := newList()
				err := c.List(ctx, list, &client.ListOptions{Namespace: key.namespace, Raw: &options})
				w.mu.Lock()
				defer w.mu.Unlock()
				w.err = err
				return list, err
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return c.Watch(ctx, newList(), &client.ListOptions{Namespace: key.namespace, Raw: &options})
			},
		},
		Transform: func(item any) (any, error) {
			if obj, ok := item.(*unstructured.Unstructured); ok {
				obj.SetManagedFields(nil)
			}
			return item, nil
		},
		Handler: cache.ResourceEventHandlerDetailedFuncs{
			AddFunc: func(item any, isInInitialList bool) {
				if !isInInitialList {
					w.wake(item)
				}
			},
			UpdateFunc: func(before, after any) { w.wake(before, after) },
			DeleteFunc: func(item any) {
				if unseen, ok := item.(cache.DeletedFinalStateUnknown); ok {
					item = unseen.Obj
				}
				w.wake(item)
			},
		},
	})
	w.store = store
	w.hasSynced = informer.HasSynced
	go informer.RunWithContext(ctx)
	return w
}

// wake wakes the parents that are concerned by a change: it has an object as it was and as it is.
func (w *watched) wake(versions ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for r, p := range w.relations {
		concerned := slices.ContainsFunc(versions, func(item any) bool {
			obj, ok := item.(*unstructured.Unstructured)
			return ok && r.concerns(w, obj)
		})
		if concerned {
			p.wakeUp()
		}
	}
}

// listTimeout is how long a synchronization waits for the related objects.
const listTimeout = 30 * time.Second

// wait waits until the objects are known.
func (w *watched) wait(ctx context.Context) error {
	const pause = 20 * time.Millisecond
	err := wait.PollUntilContextTimeout(ctx, pause, listTimeout, true, func(context.Context) (bool, error) { return w.hasSynced(), nil })
	if err == nil || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Errorf("the related objects of the kind %s cannot be listed: %w", groupOf(w.key.GroupVersionKind), errors.Join(w.err, err))
}
