package sharing

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/shards"
	"github.com/kopf-go/kopf/test/testenv"
)

var (
	stories    = flag.Uint64("stories", 1, "how many stories are told with each API server, from seed 1")
	firstStory = flag.Uint64("first-story", 1, "the first seed")
	objects    = flag.Int("objects", 200, "how many objects there are at the beginning of a story")
	strikes    = flag.Int("strikes", 4, "how often a replica joins, stops, is killed, or is frozen in a story: each once in four strikes")
	patience   = flag.Duration("patience", time.Minute, "how long something may take that must happen in the end")
)

// story is what happens to some replicas and their objects.
type story struct {
	*gomega.WithT
	t         *testing.T
	cluster   *testenv.Cluster
	namespace string
	journal   *journal
	leases    *leases
	dice      *rand.Rand

	replicas []*process // that are running
	joined   int
	began    time.Time

	mu      sync.Mutex
	deaths  map[string]time.Time // of those that were killed
	freezes []freeze
	// live has the objects that exist, by their name, and their sizes.
	live    map[string]*subject
	gone    []*subject
	created int
	// children counts how often each child was created, and entries has the successes that are recorded on each object.
	children map[string]int
	entries  map[types.UID][]string
	recorded map[change]time.Time // when an entry was seen first
}

// change is what a handler has succeeded with.
type change struct {
	uid  types.UID
	what string
}

// freeze is a time in which a process stands still.
type freeze struct {
	name        string
	from, until time.Time
}

// subject is an object of a story.
type subject struct {
	*unstructured.Unstructured
	size    int64
	changed time.Time
	// mourned is set if it had a finalizer when it was deleted. Otherwise, no replica has seen it in time.
	mourned bool
}

// TestStories lets replicas join, stop, be killed, and be frozen, while objects are created, changed, and deleted.
func TestStories(t *testing.T) {
	for name, options := range gates {
		t.Run(name, func(t *testing.T) {
			cluster := testenv.Start(t, options)
			for seed := *firstStory; seed < *firstStory+*stories; seed++ {
				t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { newStory(t, cluster, seed).tell(cluster.HasShardedLists()) })
			}
		})
	}
}

func newStory(t *testing.T, cluster *testenv.Cluster, seed uint64) *story {
	t.Helper()
	namespace := cluster.Namespace(t)
	return &story{
		WithT: gomega.NewWithT(t), t: t, cluster: cluster, namespace: namespace, dice: rand.New(rand.NewPCG(seed, 0)), began: time.Now(),
		journal: &journal{path: filepath.Join(t.TempDir(), "journal")}, leases: watchLeases(t, cluster, namespace),
		deaths: map[string]time.Time{}, live: map[string]*subject{},
		children: map[string]int{}, entries: map[types.UID][]string{}, recorded: map[change]time.Time{},
	}
}

func (s *story) tell(selects bool) {
	s.watch(&corev1.ConfigMapList{}, s.observeChild)
	s.watch(listOf("kopf.dev/v1", "KopfExample"), s.observeObject)
	for range 3 {
		s.join()
	}
	s.awaitBalance()
	s.createMany(*objects)
	s.awaitHandled("the creation")
	s.expectSelection(selects)

	others, stop := context.WithCancel(s.t.Context())
	var acting sync.WaitGroup
	dice := rand.New(rand.NewPCG(s.dice.Uint64(), 0))
	acting.Go(func() { s.act(others, dice) })
	s.t.Cleanup(acting.Wait)
	var plan []int
	for len(plan) < *strikes {
		plan = append(plan, s.dice.Perm(4)...)
	}
	for _, what := range plan[:*strikes] {
		<-time.After(time.Duration(s.dice.IntN(4000)) * time.Millisecond)
		s.strike(what)
	}
	stop()
	acting.Wait()
	s.awaitBalance()
	s.awaitHandled("the storm")
	s.rebalanceQuietly()

	for _, one := range s.live {
		s.delete(one)
	}
	s.awaitGone()
	for _, p := range s.replicas {
		p.signal(s.t, syscall.SIGTERM)
	}
	for _, p := range s.replicas {
		s.Expect(<-p.done).To(gomega.Succeed())
	}
	s.judge()
}

func (s *story) note(format string, args ...any) {
	s.t.Helper()
	s.t.Logf("%6.1f s  %s", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// join starts a replica, and waits until the others know it.
func (s *story) join() {
	s.t.Helper()
	name := fmt.Sprint("replica-", s.joined)
	s.joined++
	s.note("%s joins", name)
	s.replicas = append(s.replicas, spawn(s.t, s.cluster, name, s.namespace, s.journal.path))
	s.Eventually(func() bool { return s.leases.knows(name) }, *patience).Should(gomega.BeTrue())
}

// take takes one of the replicas away.
func (s *story) take() *process {
	i := s.dice.IntN(len(s.replicas))
	p := s.replicas[i]
	s.replicas = slices.Delete(s.replicas, i, i+1)
	return p
}

// strike makes something happen to a replica.
func (s *story) strike(what int) {
	for len(s.replicas) < 3 {
		s.join()
	}
	switch what {
	case 0:
		s.join()
	case 1:
		p := s.take()
		s.note("%s stops", p.name)
		p.signal(s.t, syscall.SIGTERM)
		s.Expect(<-p.done).To(gomega.Succeed())
		s.note("%s has stopped", p.name)
	case 2:
		p := s.take()
		s.note("%s is killed", p.name)
		p.signal(s.t, syscall.SIGKILL)
		<-p.done
		s.mu.Lock()
		defer s.mu.Unlock()
		s.deaths[p.name] = time.Now()
	default:
		p := s.replicas[s.dice.IntN(len(s.replicas))]
		s.note("%s is frozen", p.name)
		from := time.Now()
		p.signal(s.t, syscall.SIGSTOP)
		<-time.After(leaseDuration + time.Duration(s.dice.IntN(4000))*time.Millisecond)
		p.signal(s.t, syscall.SIGCONT)
		s.note("%s goes on", p.name)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.freezes = append(s.freezes, freeze{p.name, from, time.Now()})
	}
}

// awaitBalance waits until the replicas that are running hold all shards, each its own.
func (s *story) awaitBalance() {
	s.t.Helper()
	began := time.Now()
	want := map[int]bool{number / len(s.replicas): true, (number + len(s.replicas) - 1) / len(s.replicas): true}
	s.Eventually(func(g gomega.Gomega) {
		held := map[string]int{}
		for _, name := range s.leases.holders() {
			held[name]++
		}
		for _, p := range s.replicas {
			g.Expect(want).To(gomega.HaveKey(held[p.name]), "%s holds %v", p.name, held)
		}
	}, *patience).Should(gomega.Succeed())
	s.note("the shards are divided, after %s", time.Since(began).Round(time.Millisecond))
}

// createMany creates objects.
func (s *story) createMany(n int) {
	var all errgroup.Group
	all.SetLimit(8)
	for range n {
		all.Go(s.create)
	}
	s.Expect(all.Wait()).To(gomega.Succeed())
}

func (s *story) create() error {
	s.mu.Lock()
	name := fmt.Sprint("object-", s.created)
	s.created++
	s.mu.Unlock()
	one := &subject{Unstructured: testenv.NewObject("KopfExample", s.namespace, name, map[string]any{"size": int64(0)}), changed: time.Now()}
	if err := s.cluster.Client().Create(s.t.Context(), one.Unstructured); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live[name] = one
	return nil
}

// delete deletes an object.
func (s *story) delete(one *subject) {
	now, err := s.cluster.Current(one.Unstructured)()
	if err != nil {
		s.t.Error(err)
		return
	}
	one.mourned = len(now.GetFinalizers()) > 0
	one.changed = time.Now()
	if err := s.cluster.Client().Delete(context.Background(), one.Unstructured); err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, one.GetName())
	s.gone = append(s.gone, one)
}

// act creates, changes, and deletes objects until the context is done.
func (s *story) act(ctx context.Context, dice *rand.Rand) {
	changes := int64(0)
	pause := min(50*time.Millisecond, 10*time.Second/time.Duration(*objects))
	for ctx.Err() == nil {
		<-time.After(pause)
		if dice.IntN(4) == 0 {
			if err := s.create(); err != nil && ctx.Err() == nil {
				s.t.Error(err)
			}
			continue
		}
		one := s.anyOf(dice)
		if dice.IntN(3) == 0 {
			s.delete(one)
			continue
		}
		changes++
		one.size = changes
		one.changed = time.Now()
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"size":%d}}`, changes))
		if err := s.cluster.Client().Patch(context.Background(), one.DeepCopy(), patch); err != nil {
			s.t.Error(err)
		}
	}
}

func (s *story) anyOf(dice *rand.Rand) *subject {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, len(s.live))
	for name := range s.live {
		names = append(names, name)
	}
	slices.Sort(names)
	return s.live[names[dice.IntN(len(names))]]
}

func listOf(apiVersion, kind string) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(apiVersion)
	list.SetKind(kind + "List")
	return list
}

// list returns all objects of a kind, by their name.
func (s *story) list(apiVersion, kind string) map[string]*unstructured.Unstructured {
	s.t.Helper()
	list := listOf(apiVersion, kind)
	s.Expect(s.cluster.Client().List(s.t.Context(), list, client.InNamespace(s.namespace))).To(gomega.Succeed())
	all := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		all[list.Items[i].GetName()] = &list.Items[i]
	}
	return all
}

// entriesOf returns the successes that are recorded on an object.
func entriesOf(obj *unstructured.Unstructured) []string {
	entries, _, _ := unstructured.NestedStringSlice(obj.Object, "spec", journalField)
	return entries
}

// looking is how often a story looks at all objects: the test must not take the processors from the replicas.
func looking() time.Duration {
	return max(300*time.Millisecond, time.Duration(*objects)*time.Millisecond)
}

// isHandled reports whether successes contain one creation, and the last change. A change can come before the creation was
// seen.
func (s *subject) isHandled(entries []string) bool {
	return len(entries) > 0 && strings.HasPrefix(entries[0], "creation ") && strings.HasSuffix(entries[len(entries)-1], fmt.Sprint(" ", s.size))
}

// awaitHandled waits until the last change of each object is handled, its daemon runs, and its children are up to date.
func (s *story) awaitHandled(what string) {
	s.t.Helper()
	began := time.Now()
	s.Eventually(func() (problems []string) {
		stored := s.list("kopf.dev/v1", "KopfExample")
		children := s.list("v1", "ConfigMap")
		daemons := map[types.UID]int{}
		for _, l := range s.journal.all(s.t) {
			switch l.what {
			case starts:
				daemons[l.uid]++
			case leaves:
				daemons[l.uid]--
			}
		}
		for name, one := range s.live {
			obj := stored[name]
			switch {
			case obj == nil:
				problems = append(problems, name+" does not exist")
			case !one.isHandled(entriesOf(obj)):
				problems = append(problems, fmt.Sprintf("%s has the size %d, and the handlers have succeeded for %q", name, one.size, entriesOf(obj)))
			case daemons[obj.GetUID()] < 1:
				problems = append(problems, name+" has no daemon")
			case hasProgress(obj):
				problems = append(problems, fmt.Sprintf("%s is in work: %v", name, obj.GetAnnotations()))
			default:
				for _, suffix := range []string{"-a", "-b"} {
					child := children[name+suffix]
					if child == nil {
						problems = append(problems, name+suffix+" does not exist")
					} else if size, _, _ := unstructured.NestedString(child.Object, "data", "size"); size != fmt.Sprint(one.size) {
						problems = append(problems, fmt.Sprintf("%s%s has the size %s, not %d", name, suffix, size, one.size))
					}
				}
			}
			if len(problems) > 5 {
				break
			}
		}
		return problems
	}, *patience, looking()).Should(gomega.BeEmpty(), func() string { return "after " + what })
	s.note("%d objects are handled after %s, %s later", len(s.live), what, time.Since(began).Round(time.Millisecond))
}

// hasProgress reports whether a handler of an object has a record.
func hasProgress(obj *unstructured.Unstructured) bool {
	for key := range obj.GetAnnotations() {
		for _, id := range []string{"create", "update", "delete", "children"} {
			if key == "kopf.zalando.org/"+id || strings.HasPrefix(key, "kopf.zalando.org/"+id+".") {
				return true
			}
		}
	}
	return false
}

// awaitGone waits until all deleted objects are gone.
func (s *story) awaitGone() {
	s.t.Helper()
	began := time.Now()
	s.Eventually(func() map[string]*unstructured.Unstructured { return s.list("kopf.dev/v1", "KopfExample") }, *patience, looking()).
		Should(gomega.BeEmpty())
	s.note("all objects are gone, %s later", time.Since(began).Round(time.Millisecond))
}

// quiet is how long nothing may happen to the objects.
const quiet = 3 * time.Second

// expectSelection expects that the API server selects the objects of shards, or that it ignores the selector.
func (s *story) expectSelection(selects bool) {
	s.t.Helper()
	list := listOf("kopf.dev/v1", "KopfExample")
	selector := &client.ListOptions{Raw: &metav1.ListOptions{ShardSelector: division.Selector(shards.SetOf(0), true)}}
	s.Expect(s.cluster.Client().List(s.t.Context(), list, client.InNamespace(s.namespace), selector)).To(gomega.Succeed())
	hasOthers := slices.ContainsFunc(list.Items, func(one unstructured.Unstructured) bool { return division.Of(s.namespace, one.GetUID()) != 0 })
	s.Expect(hasOthers).To(gomega.Equal(!selects))
}

// rebalanceQuietly lets a replica join and another one stop, which must not write to any object.
func (s *story) rebalanceQuietly() {
	s.t.Helper()
	for _, one := range s.list("kopf.dev/v1", "KopfExample") { // deletions take their time
		if one.GetDeletionTimestamp() != nil {
			s.Eventually(s.cluster.Exists(one), *patience).Should(gomega.BeFalse())
		}
	}
	kinds := [][2]string{{"kopf.dev/v1", "KopfExample"}, {"v1", "ConfigMap"}}
	var before []map[string]*unstructured.Unstructured
	for _, kind := range kinds {
		before = append(before, s.list(kind[0], kind[1]))
	}
	writes, began := s.leases.countWrites(), time.Now()
	<-time.After(2 * quiet)
	rate := float64(s.leases.countWrites()-writes) / time.Since(began).Seconds()
	s.note("%d replicas write %.1f Leases a second", len(s.replicas), rate)
	holders := s.leases.holders()
	s.join()
	s.awaitBalance()
	between := s.leases.holders()
	p := s.take()
	s.note("%s stops", p.name)
	p.signal(s.t, syscall.SIGTERM)
	s.Expect(<-p.done).To(gomega.Succeed())
	s.awaitBalance()
	<-time.After(quiet)
	moved := 0
	for shard, holder := range s.leases.holders() {
		if holder != holders[shard] || holder != between[shard] {
			moved++
		}
	}
	s.note("%d shards have moved at rest", moved)
	s.Expect(moved).NotTo(gomega.BeZero())
	for i, kind := range kinds {
		s.Expect(s.list(kind[0], kind[1])).To(gomega.Equal(before[i]), "an object was written, although nothing had changed")
	}
}

// watch calls a function for what happens to the objects of a kind, until the test ends.
func (s *story) watch(list client.ObjectList, observe func(watch.EventType, client.Object)) {
	s.t.Helper()
	s.Expect(s.cluster.Client().List(s.t.Context(), list, client.InNamespace(s.namespace))).To(gomega.Succeed())
	begin := func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		return s.cluster.Client().Watch(ctx, list, client.InNamespace(s.namespace), &client.ListOptions{Raw: &options})
	}
	follow(s.t, list.GetResourceVersion(), begin, func(what watch.EventType, object runtime.Object) {
		if obj, ok := object.(client.Object); ok && what != watch.Bookmark {
			s.mu.Lock()
			defer s.mu.Unlock()
			observe(what, obj)
		}
	})
}

// observeChild counts how often each child is created.
func (s *story) observeChild(what watch.EventType, child client.Object) {
	switch what {
	case watch.Added:
		s.children[child.GetName()]++
	case watch.Deleted: // there is no garbage collector
		s.t.Errorf("the child %s was deleted", child.GetName())
	}
}

// observeObject keeps the successes that are recorded on each object.
func (s *story) observeObject(_ watch.EventType, obj client.Object) {
	one, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return
	}
	uid, entries := one.GetUID(), entriesOf(one)
	s.entries[uid] = entries
	for _, entry := range entries {
		if c := (change{uid, entry}); s.recorded[c].IsZero() {
			s.recorded[c] = time.Now()
		}
	}
}

var division = shards.Division{Number: number}
