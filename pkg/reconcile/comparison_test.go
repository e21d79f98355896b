package reconcile

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/watch"
	"github.com/kopf-go/kopf/pkg/shards"
)

// lists is an API server that lists the metadata of objects, by plural. A resource without
// an entry cannot be listed.
type lists struct {
	items    map[string][]any
	requests []string
	failures int // of the next requests
}

func (l *lists) RoundTrip(r *http.Request) (*http.Response, error) {
	plural := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	l.requests = append(l.requests, plural)
	items, known := l.items[plural]
	if l.failures--; l.failures >= 0 || !known {
		return nil, errors.New("no connection")
	}
	list := m{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": m{"resourceVersion": "99"}, "items": items}
	return answer(http.StatusOK, list), nil
}

func listed(name, uid, version string) any {
	return m{"metadata": m{"namespace": "ns", "name": name, "uid": uid, "resourceVersion": version}}
}

// standby is a replica that has only watched.
type standby struct {
	*Engine
	t      *testing.T
	server *lists
}

func onStandby(t *testing.T, more ...func(*Config)) standby {
	server := &lists{items: map[string][]any{}}
	config := Config{Logger: logr.Discard(), REST: &rest.Config{Host: "http://nowhere", QPS: -1}, HTTP: &http.Client{Transport: server}}
	for _, change := range more {
		change(&config)
	}
	return standby{New(config), t, server}
}

// watch adds a resource with the objects that the watch has shown.
func (s standby) watch(plural string, handlers registry.Handlers, seen ...*object.Snapshot) *resource {
	s.t.Helper()
	found := discovery.SelectedResource{Resource: selector.Resource{Group: "kopf.dev", Version: "v1", Plural: plural, Kind: "Kind", Namespaced: true}}
	api, err := kube.New(s.REST, s.HTTP, found.Resource, s.Settings)
	if err != nil {
		s.t.Fatal(err)
	}
	r := newResource(watch.NewResource(found, api), handlers)
	stream := watch.NewStream(s.t.Context(), r.Resource, "", unobserved{})
	r.Add(stream)
	for _, snapshot := range seen {
		if err := stream.Add(snapshot); err != nil {
			s.t.Fatal(err)
		}
	}
	s.resources.put(r)
	return r
}

func TestFailoverFindsWhatTheWatchHasMissed(t *testing.T) {
	s := onStandby(t)
	r := s.watch("kexes", handlersOf(t, onCreate), seen(t, "7"))
	other := s.watch("others", handlersOf(t, onCreate), seen(t, "7"))
	s.server.items["kexes"] = []any{listed("a", "u-1", "8"), listed("new", "u-2", "9")}
	s.server.items["others"] = []any{}
	if !s.catchUp(t.Context()) {
		t.Fatal("work does not begin")
	}
	stateOf := func(r *resource, name string) *objectState {
		return s.objects.of(object.Key{Resource: r.Name, NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}})
	}
	if !isStale(t, stateOf(r, "a"), "7") || isStale(t, stateOf(r, "a"), "8") {
		t.Error("the version that the watch has shown is not the last one, but would be handled")
	}
	if !isStale(t, stateOf(r, "new"), "8") || isStale(t, stateOf(r, "new"), "9") {
		t.Error("the version of the object that the watch has not shown is not known")
	}
	if !stateOf(other, "a").writes.Gone() || stateOf(r, "a").writes.Gone() {
		t.Error("the object that is not listed counts as existing, or another one as gone")
	}
}

// Without the comparison, nothing can be handled safely, so it is repeated.
func TestWorkBeginsAfterASuccessfulComparison(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := onStandby(t)
		s.watch("kexes", handlersOf(t, onCreate))
		s.server.items["kexes"], s.server.failures = []any{}, 3
		var log []string
		s.Logger = funcr.New(func(_, args string) { log = append(log, args) }, funcr.Options{})
		began := time.Now()
		if !s.catchUp(t.Context()) || time.Since(began) != 3*time.Second || len(s.server.requests) != 4 {
			t.Errorf("got %d requests in %s", len(s.server.requests), time.Since(began))
		}
		if len(log) != 3 || !strings.Contains(log[0], "no connection") {
			t.Errorf("each failure is logged with its reason; got %q", log)
		}
	})
}

func TestComparisonEndsWithTheOperator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := onStandby(t)
		s.watch("unreachable", handlersOf(t, onCreate))
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		if s.catchUp(ctx) {
			t.Error("work begins without the comparison")
		}
	})
}

// Indices follow the watch, and nothing is written to their objects.
func TestIndexedObjectsAreNotCompared(t *testing.T) {
	s := onStandby(t)
	s.watch("indexed", nil, seen(t, "7"))
	s.watch("kexes", handlersOf(t, onCreate))
	s.server.items["kexes"] = []any{}
	if err := s.compareVersions(t.Context()); err != nil || !slices.Equal(s.server.requests, []string{"kexes"}) {
		t.Errorf("got %v, requests %q", err, s.server.requests)
	}
}

// Other replicas compare the objects of their shards.
func TestObjectsOfOtherShardsAreNotCompared(t *testing.T) {
	s := onStandby(t, func(c *Config) { c.Division = shards.Division{Number: 2} })
	r := s.watch("kexes", handlersOf(t, onCreate), seen(t, "7"))
	s.server.items["kexes"] = []any{listed("a", "u-1", "8")}
	key := object.Key{Resource: r.Name, NamespacedName: keyOf("a").NamespacedName}
	own := s.Division.Of("ns", "u-1")
	for _, shard := range []int{1 - own, own} {
		s.tenures.put(&tenure{shard: shard})
		if err := s.compareVersions(t.Context()); err != nil || s.objects.has(key) != (shard == own) {
			t.Errorf("got %v with shard %d; compared: %t", err, shard, s.objects.has(key))
		}
	}
}

// A handler that has outlasted the pause owns the state of its object.
func TestObjectOfAnAbandonedPassIsComparedAfterIt(t *testing.T) {
	s := onStandby(t)
	r := s.watch("kexes", handlersOf(t, onCreate), seen(t, "7"))
	s.server.items["kexes"] = []any{listed("a", "u-1", "8")}
	key := object.Key{Resource: r.Name, NamespacedName: keyOf("a").NamespacedName}
	a := &abandoned{}
	s.abandoned[key] = a
	if err := s.compareVersions(t.Context()); err != nil || s.objects.has(key) || a.catchUp == nil {
		t.Fatalf("got %v; the state exists: %t", err, s.objects.has(key))
	}
	var state objectState
	if a.catchUp(&state); !isStale(t, &state, "7") {
		t.Error("the version that the watch has shown would be handled")
	}
}

// The predecessor has written version 9, and the watch is late. The list is right; but if the
// watch shows a version after both, then the object exists.
func TestWatchIsRightAfterTheList(t *testing.T) {
	for version, gone := range map[string]bool{"8": true, "10": false} {
		t.Run("version "+version, func(t *testing.T) {
			var s objectState
			s.resetFor("u-1")
			s.writes.NotOlderThan("9")
			s.catchUp(seen(t, "7"), kube.Version{})
			isStale(t, &s, version)
			if s.writes.Gone() != gone {
				t.Errorf("the object is gone: %t", s.writes.Gone())
			}
		})
	}
}

// A replica that worked before a pause knows an earlier object of the name.
func TestComparisonIsAboutTheObjectOfTheWatch(t *testing.T) {
	var s objectState
	s.resetFor("u-0")
	s.handled = true
	s.catchUp(seen(t, "7"), kube.Version{UID: "u-1", ResourceVersion: "7"})
	if s.writes.UID() != "u-1" || s.handled || s.writes.Gone() {
		t.Errorf("got %q, %+v", s.writes.UID(), s.lifetime)
	}
}
