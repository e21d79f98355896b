package fidelity

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/sharding"

	"github.com/kopf-go/kopf/pkg/kopftest"
	"github.com/kopf-go/kopf/test/testenv"
)

// The selectors of two shards, by the hash of uids.
const (
	lowerShard = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')"
	upperShard = "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')"
)

// isUpper reports whether an object is in the upper shard.
func isUpper(o *object) bool { return sharding.HashField(string(o.GetUID())) >= "8" }

// ofShard returns the parameter of a selector.
func ofShard(selector string) string { return "shardSelector=" + url.QueryEscape(selector) }

// shardInfo returns the selector that a list says it is restricted to.
func shardInfo(list *object) string {
	selector, _ := field(list, "metadata", "shardInfo", "selector").(string)
	return selector
}

// configMap creates a built-in object.
func (s *server) configMap(name string) *object {
	s.t.Helper()
	return s.must(http.MethodPost, s.core("configmaps"), fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q}}`, name), 201)
}

// thing creates a custom object.
func (s *server) thing(name string) *object {
	s.t.Helper()
	return s.create(s.things(), name, "")
}

// divided creates objects until both shards have at least two, and returns the names.
func divided(create func(name string) *object) (lower, upper []string) {
	for i := 0; len(lower) < 2 || len(upper) < 2; i++ {
		if name := fmt.Sprintf("o%02d", i); isUpper(create(name)) {
			upper = append(upper, name)
		} else {
			lower = append(lower, name)
		}
	}
	return lower, upper
}

// all returns the names of both shards in the order of lists.
func all(lower, upper []string) string {
	return fmt.Sprint(slices.Sorted(slices.Values(slices.Concat(lower, upper))))
}

// With the feature gate ShardedListAndWatch, both servers filter lists and watches.
func TestShardedLists(t *testing.T) {
	gated := testenv.Start(t, testenv.Options{CRDs: []string{}, ShardedLists: true})
	for name, test := range map[string]func(t *testing.T, s *server){
		"lists": testListsOfShards, "pages": testPagesOfShards, "mistakes": testMistakesInShards,
		"watches": testWatchesOfShards, "bookmarks": testBookmarksOfShards, "collections": testDeletionOfAShard,
	} {
		t.Run(name+"/memory", func(t *testing.T) {
			memory := kopftest.NewAPIServer(t, kopftest.ShardedLists())
			s := newServer(t, memory.Config())
			s.memory = memory
			test(t, s)
		})
		if gated.HasShardedLists() { // Kubernetes 1.36 or newer
			t.Run(name+"/kubernetes", func(t *testing.T) { test(t, newServer(t, gated.Config())) })
		}
	}
}

// Lists of custom resources, and lists of metadata only, do not say which shard they are.
func testListsOfShards(t *testing.T, s *server) {
	for path, create := range map[string]func(string) *object{s.core("configmaps"): s.configMap, s.things(): s.thing} {
		lower, upper := divided(create)
		said := func(selector string) string {
			if path == s.things() {
				return ""
			}
			return selector
		}
		const both = lowerShard + " || " + upperShard
		for _, test := range []struct{ query, want, shard string }{
			{ofShard(lowerShard), fmt.Sprint(lower), said(lowerShard)},
			{ofShard(upperShard), fmt.Sprint(upper), said(upperShard)},
			{ofShard(upperShard) + "&resourceVersion=0", fmt.Sprint(upper), said(upperShard)},
			{ofShard(both), all(lower, upper), said(both)},
			{ofShard(strings.NewReplacer(" ", "", "'", `"`).Replace(both) + " "), all(lower, upper), said(both)},
			{ofShard(upperShard) + "&fieldSelector=metadata.name%3D" + upper[0], fmt.Sprint(upper[:1]), said(upperShard)},
			{ofShard(upperShard) + "&fieldSelector=metadata.name%3D" + lower[0], "[]", said(upperShard)},
			{"shardSelector=", all(lower, upper), ""},
		} {
			list := s.must(http.MethodGet, path+"?"+test.query, "", 200)
			if names(list) != test.want || shardInfo(list) != test.shard {
				t.Errorf("%s of %s: got %s of %q, want %s of %q", path, test.query, names(list), shardInfo(list), test.want, test.shard)
			}
		}
		s.merge(path+"/"+upper[1], `{"metadata":{"labels":{"color":"blue"}}}`, 200)
		s.merge(path+"/"+lower[1], `{"metadata":{"labels":{"color":"blue"}}}`, 200)
		if blue := s.must(http.MethodGet, path+"?labelSelector=color%3Dblue&"+ofShard(upperShard), "", 200); names(blue) != fmt.Sprint(upper[1:2]) {
			t.Errorf("%s with a label: got %s, want %s", path, names(blue), upper[1])
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path+"?"+ofShard(upperShard), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json")
		if list := s.answer(request); list.GetKind() != "PartialObjectMetadataList" || names(list) != fmt.Sprint(upper) || shardInfo(list) != "" {
			t.Errorf("%s: the metadata are %v", path, list.Object)
		}
	}
	byNamespace := "shardRange(object.metadata.namespace, '0x0000000000000000', '0x8000000000000000')"
	isInside := sharding.HashField(s.namespace) < "8"
	if got := s.must(http.MethodGet, s.things()+"?"+ofShard(byNamespace), "", 200); (names(got) != "[]") != isInside {
		t.Errorf("the namespace %s is in the shard: %t; got %s", s.namespace, isInside, names(got))
	}
}

// The continue token does not contain the shard: every request names it. A list also continues if all objects that follow
// are in another shard.
func testPagesOfShards(t *testing.T, s *server) {
	lower, upper := divided(s.configMap)
	for selector, want := range map[string][]string{lowerShard: lower, upperShard: upper} {
		var got []string
		pages := 0
		path := s.core("configmaps") + "?limit=1&" + ofShard(selector)
		for next := ""; ; {
			page := s.must(http.MethodGet, path+"&continue="+url.QueryEscape(next), "", 200)
			pages++
			got = append(got, strings.Fields(strings.Trim(names(page), "[]"))...)
			if shardInfo(page) != selector || field(page, "metadata", "remainingItemCount") != nil {
				t.Errorf("got the metadata %v", page.Object["metadata"])
			}
			next, _ = field(page, "metadata", "continue").(string)
			if next == "" {
				break
			}
		}
		wantPages := len(want)
		if last := all(lower, upper); !strings.HasSuffix(last, want[len(want)-1]+"]") {
			wantPages++
		}
		if !slices.Equal(got, want) || pages != wantPages {
			t.Errorf("%s: got %v on %d pages, want %v on %d", selector, got, pages, want, wantPages)
		}
	}
}

// A mistake is no bad request in Kubernetes 1.37, but an error without a reason.
func testMistakesInShards(t *testing.T, s *server) {
	for selector, want := range map[string]string{
		" ":     "empty shard selector is not allowed; omit the parameter for unfiltered lists",
		"true":  "unexpected expression kind 5; expected shardRange() call or || operator",
		"a &&":  "CEL parse error: Syntax error: mismatched input '<EOF>' expecting",
		"a()":   `unsupported function "a"; only shardRange() and || are allowed`,
		"!true": `unsupported function "!_"; only shardRange() and || are allowed`,
		"shardRange(object.metadata.uid, '0x0', '0x8000000000000000')":                                       `hexStart must be a 0x-prefixed 16-digit hex value, got "0x0" (did you mean "0x0000000000000000"?)`,
		"shardRange(object.metadata.uid, '0x8000000000000000', '0x8000000000000000')":                        "shard range start 0x8000000000000000 must be less than end 0x8000000000000000",
		"shardRange(object.metadata.name, '0x0000000000000000', '0x8000000000000000')":                       `unsupported field path "object.metadata.name"; supported: object.metadata.uid, object.metadata.namespace`,
		lowerShard + " || shardRange(object.metadata.namespace, '0x0000000000000000', '0x8000000000000000')": `all shard ranges must use the same field, got "object.metadata.uid" and "object.metadata.namespace"`,
	} {
		for _, path := range []string{s.things(), s.core("configmaps")} {
			for _, query := range []string{"?", "?watch=true&", "?limit=1&", "?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&"} {
				got := s.must(http.MethodGet, path+query+ofShard(selector), "", 500)
				if message, _ := field(got, "message").(string); !strings.HasPrefix(message, "invalid shard selector: "+want) || field(got, "reason") != nil {
					t.Errorf("%s: got %v", selector, got.Object)
				}
			}
		}
	}
	s.must(http.MethodGet, s.things()+"?watch=true&sendInitialEvents=true&"+ofShard("true"), "", 422)
	s.must(http.MethodGet, s.things()+"?labelSelector=,&"+ofShard("true"), "", 400)
}

// expectObject waits for the next event about an object. The real server can send bookmarks in between.
func (w *stream) expectObject(kind, name string) {
	w.t.Helper()
	got, about, err := w.next()
	for err == nil && got == "BOOKMARK" {
		got, about, err = w.next()
	}
	if err != nil || got != kind || about.GetName() != name {
		w.t.Fatalf("got %s of %v (%v), want %s of %q", got, about, err, kind, name)
	}
}

func testWatchesOfShards(t *testing.T, s *server) {
	for path, create := range map[string]func(string) *object{s.core("configmaps"): s.configMap, s.things(): s.thing} {
		_, upper := divided(create)
		last := s.must(http.MethodGet, path, "", 200).GetResourceVersion()
		initial := s.watch(path, "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&"+ofShard(upperShard))
		later := s.watch(path, "resourceVersion="+last+"&"+ofShard(upperShard))
		synthetic := s.watch(path, ofShard(upperShard))
		for _, name := range upper {
			initial.expect("ADDED", name)
			synthetic.expect("ADDED", name)
		}
		if end := initial.expect("BOOKMARK", ""); end.GetAnnotations()["k8s.io/initial-events-end"] != "true" {
			t.Errorf("the initial events end with %v", end.Object)
		}
		var expected []string
		_, _ = divided(func(name string) *object {
			name = "new-" + name
			created := create(name)
			s.merge(path+"/"+name, `{"metadata":{"labels":{"color":"blue"}}}`, 200)
			s.must(http.MethodDelete, path+"/"+name, "", 200)
			if isUpper(created) {
				expected = append(expected, name)
			}
			return created
		})
		for _, name := range expected {
			for _, watch := range []*stream{initial, later, synthetic} {
				watch.expectObject("ADDED", name)
				watch.expectObject("MODIFIED", name)
				watch.expectObject("DELETED", name)
			}
		}
	}
}

// Bookmarks also have the versions of other shards: a watch of a shard in which nothing happens does not become too old.
func testBookmarksOfShards(t *testing.T, s *server) {
	number := 0
	s.eventually(func() bool {
		version := s.must(http.MethodGet, s.things(), "", 200).GetResourceVersion()
		// The real server sends a bookmark two seconds before the end, which a slow machine can miss.
		watch := s.watch(s.things(), "allowWatchBookmarks=true&timeoutSeconds=4&resourceVersion="+version+"&"+ofShard(lowerShard))
		for isLast := false; !isLast; number++ {
			created := s.thing(fmt.Sprintf("o%02d", number))
			version = created.GetResourceVersion()
			isLast = isUpper(created)
		}
		if s.memory != nil {
			s.memory.SendBookmarks()
		}
		for {
			kind, about, err := watch.next()
			switch {
			case err != nil:
				return false
			case kind == "BOOKMARK" && about.GetResourceVersion() == version:
				return true
			case kind == "ADDED" && isUpper(about):
				t.Errorf("got %s of the other shard", about.GetName())
			}
		}
	})
}

// The selector also restricts which objects are deleted together.
func testDeletionOfAShard(t *testing.T, s *server) {
	for path, create := range map[string]func(string) *object{s.core("configmaps"): s.configMap, s.things(): s.thing} {
		lower, upper := divided(create)
		s.must(http.MethodDelete, path+"?"+ofShard("true"), "", 500)
		said := lowerShard
		if path == s.things() {
			said = ""
		}
		if deleted := s.must(http.MethodDelete, path+"?"+ofShard(lowerShard), "", 200); names(deleted) != fmt.Sprint(lower) || shardInfo(deleted) != said {
			t.Errorf("got %s of %q, want %s of %q", names(deleted), shardInfo(deleted), lower, said)
		}
		if left := s.must(http.MethodGet, path, "", 200); names(left) != fmt.Sprint(upper) {
			t.Errorf("%s are left, want %s", names(left), upper)
		}
	}
}

// By default, both servers ignore the parameter, whatever it is, and do not say so.
func TestShardsAreIgnoredByDefault(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		lower, upper := divided(s.thing)
		for _, selector := range []string{lowerShard, upperShard, "true"} {
			for query, want := range map[string]string{"": all(lower, upper), "&fieldSelector=metadata.name%3D" + upper[0]: fmt.Sprint(upper[:1])} {
				list := s.must(http.MethodGet, s.things()+"?"+ofShard(selector)+query, "", 200)
				if names(list) != want || shardInfo(list) != "" {
					t.Errorf("%s: got %s of %q, want %s", selector, names(list), shardInfo(list), want)
				}
			}
			watch := s.watch(s.things(), ofShard(selector))
			for _, name := range slices.Sorted(slices.Values(slices.Concat(lower, upper))) {
				watch.expect("ADDED", name)
			}
			if list := s.must(http.MethodGet, s.core("configmaps")+"?"+ofShard(selector), "", 200); shardInfo(list) != "" {
				t.Errorf("%s: got the shard %q", selector, shardInfo(list))
			}
		}
	})
}
