package page

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unique"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kopf-go/kopf/pkg/cli/inspect"
)

// table has the rows of a resource while its objects are watched.
type table struct {
	of        inspect.WatchedResource
	cluster   *inspect.Cluster
	namespace string
	// changed is called after a change of an object of the resource, with whether its row is another one.
	changed func(resource string, object types.NamespacedName, isOther bool)

	mu       sync.RWMutex
	rows     map[types.NamespacedName]row
	counts   map[inspect.State]int
	isListed bool          // all objects have been seen once
	tried    chan struct{} // closed with the first list or error
	err      error         // why the objects are unknown
}

// row is what is kept of an object.
type row struct {
	uid          types.UID
	state        inspect.State
	since, until int64 // in seconds; 0 for unknown and for never
}

// seen is a row on its way from the API server to the table, as reflectors need it.
type seen struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	row row
}

// DeepCopyObject copies the pointer: a row does not change.
func (s *seen) DeepCopyObject() runtime.Object { return s }

// seenList is a page of a list.
type seenList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []*seen
}

// DeepCopyObject copies the pointer: a list does not change.
func (l *seenList) DeepCopyObject() runtime.Object { return l }

// The delays after an error of a watch.
const (
	firstDelay = time.Second
	lastDelay  = 30 * time.Second
)

// recheckInterval is how often the objects are read again whose states may have ended without a change. maxRechecks is how
// many of them at once.
const (
	recheckInterval = 15 * time.Second
	maxRechecks     = 50
)

// listPage is the number of objects that are in memory at once.
const listPage = 250

// reset forgets all rows.
func (t *table) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = map[types.NamespacedName]row{}
	t.counts = map[inspect.State]int{}
	t.isListed = false
	t.tried = make(chan struct{})
	t.err = nil
}

// watch keeps the rows until the context is done, and then forgets them.
func (t *table) watch(ctx context.Context) {
	defer t.reset()
	var rechecks sync.WaitGroup
	rechecks.Go(func() { t.recheck(ctx) })
	defer rechecks.Wait()
	api, selection := t.cluster.API(t.of, t.namespace)
	silent := logr.Discard() // errors are shown on the page
	reflector := cache.NewReflectorWithOptions(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = selection.LabelSelector
			options.FieldSelector = selection.FieldSelector
			options.ResourceVersion = "" // consistent, and in pages
			options.ResourceVersionMatch = ""
			list, err := api.List(ctx, options)
			if err != nil {
				return nil, err
			}
			page := &seenList{ListMeta: metav1.ListMeta{ResourceVersion: list.GetResourceVersion(), Continue: list.GetContinue()}}
			for i := range list.Items {
				page.Items = append(page.Items, t.see(ctx, &list.Items[i]))
				list.Items[i].Object = nil
			}
			return page, nil
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = selection.LabelSelector
			options.FieldSelector = selection.FieldSelector
			events, err := api.Watch(ctx, options)
			if err != nil {
				return nil, err
			}
			return watch.Filter(events, func(event watch.Event) (watch.Event, bool) {
				obj, ok := event.Object.(*unstructured.Unstructured)
				isChange := event.Type == watch.Added || event.Type == watch.Modified || event.Type == watch.Deleted
				if ok && isChange {
					event.Object = t.see(ctx, obj)
				}
				return event, true // also bookmarks and errors
			}), nil
		},
	}, nil, t, cache.ReflectorOptions{Logger: &silent, Name: t.of.Name})
	reflector.WatchListPageSize = listPage
	for delay := firstDelay; ctx.Err() == nil; delay = min(2*delay, lastDelay) {
		err := reflector.ListAndWatchWithContext(ctx)
		if err == nil { // the watch has expired
			delay = firstDelay
		} else {
			t.fail(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		}
	}
}

// see makes the row of an object.
func (t *table) see(ctx context.Context, obj *unstructured.Unstructured) *seen {
	summary := t.cluster.Summarize(ctx, t.of, obj)
	s := &seen{row: row{uid: obj.GetUID(), state: summary.State, since: seconds(summary.Since), until: seconds(summary.Until)}}
	s.Name = strings.Clone(obj.GetName())
	s.Namespace = unique.Make(obj.GetNamespace()).Value() // many objects share few namespaces
	s.ResourceVersion = obj.GetResourceVersion()
	return s
}

// seconds returns a time as it is kept.
func seconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// Add implements cache.ReflectorStore.
func (t *table) Add(added any) error { return t.Update(added) }

// Update implements cache.ReflectorStore.
func (t *table) Update(updated any) error {
	s, ok := updated.(*seen)
	if !ok {
		return fmt.Errorf("unexpected object of the type %T", updated)
	}
	t.put(types.NamespacedName{Namespace: s.Namespace, Name: s.Name}, s.row)
	return nil
}

func (t *table) put(key types.NamespacedName, now row) {
	t.mu.Lock()
	before, known := t.rows[key]
	t.rows[key] = now
	if known {
		t.counts[before.state]--
	}
	t.counts[now.state]++
	t.err = nil
	t.mu.Unlock()
	t.changed(t.of.Name, key, !known || before != now)
}

// Delete implements cache.ReflectorStore.
func (t *table) Delete(deleted any) error {
	s, ok := deleted.(*seen)
	if !ok {
		return fmt.Errorf("unexpected object of the type %T", deleted)
	}
	key := types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
	t.mu.Lock()
	before, known := t.rows[key]
	if known {
		t.counts[before.state]--
		delete(t.rows, key)
	}
	t.err = nil
	t.mu.Unlock()
	t.changed(t.of.Name, key, known)
	return nil
}

// Replace implements cache.ReflectorStore.
func (t *table) Replace(all []any, _ string) error {
	rows := make(map[types.NamespacedName]row, len(all))
	counts := map[inspect.State]int{}
	for _, one := range all {
		s, ok := one.(*seen)
		if !ok {
			return fmt.Errorf("unexpected object of the type %T", one)
		}
		rows[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}] = s.row
		counts[s.row.state]++
	}
	t.mu.Lock()
	t.rows = rows
	t.counts = counts
	t.isListed = true
	t.finish(nil)
	t.mu.Unlock()
	t.changed(t.of.Name, types.NamespacedName{}, true)
	return nil
}

// Resync implements cache.ReflectorStore.
func (t *table) Resync() error { return nil }

// fail records why the objects are unknown.
func (t *table) fail(err error) {
	t.mu.Lock()
	t.finish(err)
	t.mu.Unlock()
	t.changed(t.of.Name, types.NamespacedName{}, true)
}

// finish ends an attempt to list the objects. It is called with the lock.
func (t *table) finish(err error) {
	t.err = err
	select {
	case <-t.tried:
	default:
		close(t.tried)
	}
}

// recheck reads objects again whose states can have ended without a change: a wait, or a suspension.
func (t *table) recheck(ctx context.Context) {
	ticker := time.NewTicker(recheckInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for _, key := range t.ended(time.Now()) {
			api, _ := t.cluster.API(t.of, key.Namespace)
			obj, err := api.Get(ctx, key.Name, metav1.GetOptions{})
			if err == nil {
				t.putAgain(key, t.see(ctx, obj))
			}
		}
	}
}

// ended returns some objects whose states can have ended.
func (t *table) ended(now time.Time) (keys []types.NamespacedName) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for key, r := range t.rows {
		if r.until != 0 && r.until <= now.Unix() && len(keys) < maxRechecks {
			keys = append(keys, key)
		}
	}
	return keys
}

// putAgain replaces the row of an object that was read, unless the watch has removed it.
func (t *table) putAgain(key types.NamespacedName, s *seen) {
	t.mu.RLock()
	before, known := t.rows[key]
	t.mu.RUnlock()
	if known && before.uid == s.row.uid {
		t.put(key, s.row)
	}
}

// problem returns why the objects are unknown, for a person.
func (t *table) problem() string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	switch {
	case t.err == nil:
		return ""
	case apierrors.IsForbidden(t.err) && t.namespace == "" && t.of.Namespaced:
		return fmt.Sprintf("You may not list and watch %s in all namespaces. Start the page with --namespace for one in which you may. (%v)", t.of.Name, t.err)
	case apierrors.IsForbidden(t.err):
		return fmt.Sprintf("You may not list and watch %s. (%v)", t.of.Name, t.err)
	default:
		return fmt.Sprintf("The objects of %s cannot be watched: %v", t.of.Name, t.err)
	}
}

// wasListed reports whether all objects have been seen once.
func (t *table) wasListed() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.isListed
}

// count returns the numbers of objects by states.
func (t *table) count() map[inspect.State]int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return maps.Clone(t.counts)
}

// listedRow is a row with the object that it is about.
type listedRow struct {
	types.NamespacedName
	row

	resource string
	rank     int // of the state
}

// filter says which rows a person wants.
type filter struct {
	Resource, State, Namespace, Name string
}

// find appends the rows that match.
func (t *table) find(f filter, to []listedRow) []listedRow {
	if f.Resource != "" && f.Resource != t.of.Name {
		return to
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	for key, r := range t.rows {
		isOne := (f.State == "" || f.State == string(r.state)) && (f.Namespace == "" || f.Namespace == key.Namespace) && strings.Contains(key.Name, f.Name)
		if isOne {
			to = append(to, listedRow{key, r, t.of.Name, ranks[r.state]})
		}
	}
	return to
}

// ranks are the places of the states: what is wrong comes first.
var ranks = func() map[inspect.State]int {
	ranks := map[inspect.State]int{}
	for i, state := range inspect.States() {
		ranks[state] = i
	}
	return ranks
}()

// sortRows sorts rows: what is wrong first, and then by names.
func sortRows(rows []listedRow) {
	slices.SortFunc(rows, func(a, b listedRow) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), strings.Compare(a.resource, b.resource),
			strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
}
