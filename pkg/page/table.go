package page

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

	"github.com/kopf-go/kopf/pkg/inspect"
)

// table has the rows of a resource while its objects are watched, in all namespaces or in one.
type table struct {
	of        inspect.WatchedResource
	cluster   *inspect.Cluster
	namespace string // empty for all
	// changed is called after a change of an object of the resource, with whether its row is another one.
	changed func(resource string, object types.NamespacedName, isOther bool)

	mu       sync.RWMutex
	rows     map[types.NamespacedName]*entry
	order    []*entry // all of them, as lists show them: see compareEntries
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

// entry is a row with the object that it is about. It does not change.
type entry struct {
	types.NamespacedName
	row

	rank     int8 // of the state
	rendered atomic.Pointer[renderedRow]
}

func newEntry(of types.NamespacedName, r row) *entry {
	return &entry{NamespacedName: of, row: r, rank: ranks[r.state]}
}

// compareEntries compares the places of rows of a table: what is wrong first, and then by names.
func compareEntries(a, b *entry) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
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

func newTable(cluster *inspect.Cluster, of inspect.WatchedResource, namespace string, changed func(string, types.NamespacedName, bool)) *table {
	t := &table{cluster: cluster, of: of, namespace: namespace, changed: changed}
	t.reset()
	return t
}

// reset forgets all rows.
func (t *table) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = map[types.NamespacedName]*entry{}
	t.order = nil
	t.counts = map[inspect.State]int{}
	t.isListed = false
	t.tried = make(chan struct{})
	t.err = nil
}

// start watches the objects until the context is done. The function ends that earlier, and waits for it.
func (t *table) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		t.watch(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
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
	before := t.rows[key]
	isOther := before == nil || before.row != now
	if isOther {
		if before != nil {
			t.remove(before)
		}
		t.insert(newEntry(key, now))
	}
	t.err = nil
	t.mu.Unlock()
	t.changed(t.of.Name, key, isOther)
}

// insert adds an entry at its place. It is called with the lock.
func (t *table) insert(e *entry) {
	i, _ := slices.BinarySearchFunc(t.order, e, compareEntries)
	t.order = slices.Insert(t.order, i, e)
	t.rows[e.NamespacedName] = e
	t.counts[e.state]++
}

// remove removes an entry. It is called with the lock.
func (t *table) remove(e *entry) {
	i, _ := slices.BinarySearchFunc(t.order, e, compareEntries)
	t.order = slices.Delete(t.order, i, i+1)
	delete(t.rows, e.NamespacedName)
	t.counts[e.state]--
}

// Delete implements cache.ReflectorStore.
func (t *table) Delete(deleted any) error {
	s, ok := deleted.(*seen)
	if !ok {
		return fmt.Errorf("unexpected object of the type %T", deleted)
	}
	key := types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
	t.mu.Lock()
	before := t.rows[key]
	if before != nil {
		t.remove(before)
	}
	t.err = nil
	t.mu.Unlock()
	t.changed(t.of.Name, key, before != nil)
	return nil
}

// Replace implements cache.ReflectorStore.
func (t *table) Replace(all []any, _ string) error {
	rows := make(map[types.NamespacedName]*entry, len(all))
	order := make([]*entry, 0, len(all))
	counts := map[inspect.State]int{}
	for _, one := range all {
		s, ok := one.(*seen)
		if !ok {
			return fmt.Errorf("unexpected object of the type %T", one)
		}
		key := types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
		if rows[key] != nil { // it was deleted and created between two pages of the list
			continue
		}
		rows[key] = newEntry(key, s.row)
		order = append(order, rows[key])
		counts[s.row.state]++
	}
	slices.SortFunc(order, compareEntries)
	t.mu.Lock()
	t.rows = rows
	t.order = order
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
	if !isClosed(t.tried) {
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
	before := t.rows[key]
	t.mu.RUnlock()
	if before != nil && before.uid == s.row.uid {
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
	case apierrors.IsForbidden(t.err) && t.cluster.IsRunning:
		return fmt.Sprintf("The operator may not list and watch %s. (%v)", t.of.Name, t.err)
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

// filter says which rows a person wants.
type filter struct {
	Resource, State, Namespace, Name string
}

// list returns the rows of tables that match, of all resources: what is wrong first, and then by names. Of all that match, it
// returns those of one page, and the number of all. Nothing is sorted or copied but the rows of the page.
func list(tables []*table, f filter, page int) (rows []listedRow, all int, actualPage int) {
	var matching []matchingRows
	for _, t := range tables {
		t.mu.RLock()
	}
	defer func() {
		for _, t := range tables {
			t.mu.RUnlock()
		}
	}()
	for _, state := range inspect.States() {
		if f.State != "" && f.State != string(state) {
			continue
		}
		for _, t := range tables {
			if found := t.matching(f, state); len(found) > 0 {
				matching = append(matching, matchingRows{t.of.Name, found})
				all += len(found)
			}
		}
	}
	actualPage = max(1, min(page, (all+pageRows-1)/pageRows))
	skip := (actualPage - 1) * pageRows
	for _, m := range matching {
		skipped := min(skip, len(m.rows))
		skip -= skipped
		for _, e := range m.rows[skipped:min(len(m.rows), skipped+pageRows-len(rows))] {
			rows = append(rows, listedRow{e, m.resource})
		}
	}
	return rows, all, actualPage
}

// listedRow is a row in a list of several resources.
type listedRow struct {
	*entry

	resource string
}

// matchingRows are rows of a resource, in one state.
type matchingRows struct {
	resource string
	rows     []*entry
}

// matching returns the rows with a state that match, in order. It is called with the lock, and so the rows must be used.
func (t *table) matching(f filter, state inspect.State) []*entry {
	if f.Resource != "" && f.Resource != t.of.Name {
		return nil
	}
	first := 0
	for other, n := range t.counts {
		if ranks[other] < ranks[state] {
			first += n
		}
	}
	rows := t.order[first : first+t.counts[state]]
	if f.Namespace == "" && f.Name == "" {
		return rows
	}
	var found []*entry
	for _, e := range rows {
		if (f.Namespace == "" || f.Namespace == e.Namespace) && strings.Contains(e.Name, f.Name) {
			found = append(found, e)
		}
	}
	return found
}

// ranks are the places of the states: what is wrong comes first.
var ranks = func() map[inspect.State]int8 {
	ranks := map[inspect.State]int8{}
	for i, state := range inspect.States() {
		ranks[state] = int8(i) //nolint:gosec // there are few
	}
	return ranks
}()
