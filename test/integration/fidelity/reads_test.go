package fidelity

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"testing"
)

// names returns the names of the objects of a list.
func names(list *object) string {
	items, _ := list.Object["items"].([]any)
	var found []string
	for _, item := range items {
		found = append(found, (&object{Object: item.(map[string]any)}).GetName())
	}
	return fmt.Sprint(found)
}

func TestLists(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		for _, name := range []string{"e", "d", "c", "b", "a"} {
			s.create(s.things(), name, "")
		}
		s.merge(s.things("b"), `{"metadata":{"labels":{"color":"blue"}}}`, 200)
		all := s.must(http.MethodGet, s.things(), "", 200)
		if names(all) != "[a b c d e]" || all.GetKind() != "ThingList" || all.GetAPIVersion() != s.group+"/v1" {
			t.Errorf("got %s in a %s of %s", names(all), all.GetKind(), all.GetAPIVersion())
		}
		for selector, want := range map[string]string{
			"labelSelector=color%3Dblue": "[b]", "labelSelector=!color": "[a c d e]",
			"fieldSelector=metadata.name%3Dc": "[c]", "fieldSelector=metadata.name!%3Dc": "[a b d e]",
		} {
			if got := s.must(http.MethodGet, s.things()+"?"+selector, "", 200); names(got) != want {
				t.Errorf("%s: got %s, want %s", selector, names(got), want)
			}
		}
		s.must(http.MethodGet, s.things()+"?fieldSelector=spec.size%3D1", "", 400)
		s.must(http.MethodGet, s.things()+"?resourceVersion=99999999", "", 504)
	})
}

// Custom objects can be selected by the fields that their definition names.
func TestSelectableFields(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.create(s.things(), "a", `,"spec":{"color":"blue"}`)
		s.create(s.things(), "b", `,"spec":{}`) // red by default
		for selector, want := range map[string]string{
			"spec.color%3Dblue": "[a]", "spec.color%3Dred": "[b]", "spec.color!%3Dblue": "[b]", "spec.color%3Dblue,metadata.name%3Db": "[]",
		} {
			if got := s.must(http.MethodGet, s.things()+"?fieldSelector="+selector, "", 200); names(got) != want {
				t.Errorf("%s: got %s, want %s", selector, names(got), want)
			}
		}
		s.must(http.MethodGet, s.things()+"?fieldSelector=spec.note%3Dany", "", 400)
	})
}

func TestPages(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			s.create(s.things(), name, "")
		}
		page := s.must(http.MethodGet, s.things()+"?limit=2", "", 200)
		version, rest := field(page, "metadata", "resourceVersion"), field(page, "metadata", "remainingItemCount")
		if names(page) != "[a b]" || rest != int64(3) {
			t.Errorf("got %s, and %v remaining", names(page), rest)
		}
		s.must(http.MethodDelete, s.things("d"), "", 200)
		s.create(s.things(), "cc", "")
		next := url.QueryEscape(fmt.Sprint(field(page, "metadata", "continue")))
		page = s.must(http.MethodGet, s.things()+"?limit=2&continue="+next, "", 200)
		if names(page) != "[c d]" || field(page, "metadata", "resourceVersion") != version {
			t.Errorf("the second page is not of the version of the first: %s", names(page))
		}
		next = url.QueryEscape(fmt.Sprint(field(page, "metadata", "continue")))
		page = s.must(http.MethodGet, s.things()+"?limit=2&continue="+next, "", 200)
		if more, _ := field(page, "metadata", "continue").(string); names(page) != "[e]" || more != "" {
			t.Errorf("got %s", names(page))
		}
		if exact := s.must(http.MethodGet, s.things()+"?resourceVersionMatch=Exact&resourceVersion="+fmt.Sprint(version), "", 200); names(exact) != "[a b c d e]" {
			t.Errorf("the former version is %s", names(exact))
		}
		s.must(http.MethodGet, s.things()+"?continue=wrong", "", 400)
	})
}

// A list continues as long as objects follow, although none of them may be selected.
func TestPagesOfSelectedObjects(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		for _, name := range []string{"a", "b", "c", "d"} {
			s.create(s.things(), name, "")
		}
		s.merge(s.things("a"), `{"metadata":{"labels":{"color":"blue"}}}`, 200)
		s.merge(s.things("c"), `{"metadata":{"labels":{"color":"blue"}}}`, 200)
		for query, want := range map[string][]string{
			"limit=1&labelSelector=color%3Dblue":       {"[a]", "[c]", "[]"},
			"limit=1&labelSelector=!color":             {"[b]", "[d]"},
			"limit=2&labelSelector=color%3Dblue":       {"[a c]", "[]"},
			"limit=3&labelSelector=color%3Dblue":       {"[a c]"},
			"limit=1&fieldSelector=metadata.name%3Da":  {"[a]"},
			"limit=2&fieldSelector=metadata.name!%3Dd": {"[a b]", "[c]"},
		} {
			var got []string
			for next := ""; len(got) == 0 || next != ""; {
				page := s.must(http.MethodGet, s.things()+"?"+query+"&continue="+url.QueryEscape(next), "", 200)
				got = append(got, names(page))
				if field(page, "metadata", "remainingItemCount") != nil {
					t.Errorf("%s: got the metadata %v", query, page.Object["metadata"])
				}
				next, _ = field(page, "metadata", "continue").(string)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: got the pages %q, want %q", query, got, want)
			}
		}
	})
}

func TestWatches(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		first := s.create(s.things(), "a", "")
		blue := s.watch(s.things(), "labelSelector=color%3Dblue&resourceVersion="+first.GetResourceVersion())
		one := s.watch(s.things(), "fieldSelector=metadata.name%3Dc&resourceVersion="+first.GetResourceVersion())
		s.merge(s.things("a"), `{"metadata":{"labels":{"color":"blue"}}}`, 200)
		s.merge(s.things("a"), `{"spec":{"size":1}}`, 200)
		s.merge(s.things("a"), `{"metadata":{"labels":{"color":"red"}}}`, 200)
		s.create(s.things(), "c", "")
		blue.expect("ADDED", "a")
		blue.expect("MODIFIED", "a")
		if gone := blue.expect("DELETED", "a"); gone.GetLabels()["color"] != "blue" {
			t.Errorf("the object that is not selected any more is %v", gone.Object)
		}
		one.expect("ADDED", "c")
		synthetic := s.watch(s.things(), "")
		synthetic.expect("ADDED", "a")
		synthetic.expect("ADDED", "c")
	})
}

func TestInitialEvents(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.create(s.things(), "a", "")
		last := s.create(s.things(), "b", "")
		watch := s.watch(s.things(), "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan")
		watch.expect("ADDED", "a")
		watch.expect("ADDED", "b")
		end := watch.expect("BOOKMARK", "")
		if end.GetAnnotations()["k8s.io/initial-events-end"] != "true" || end.GetResourceVersion() < last.GetResourceVersion() || end.GetKind() != "Thing" {
			t.Errorf("got %v", end.Object)
		}
		s.create(s.things(), "c", "")
		watch.expect("ADDED", "c")
		s.must(http.MethodGet, s.things()+"?watch=true&sendInitialEvents=true", "", 422)
		s.must(http.MethodGet, s.things()+"?watch=true&resourceVersionMatch=NotOlderThan", "", 422)
		live := s.watch(s.things(), "sendInitialEvents=false&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan")
		s.create(s.things(), "d", "")
		live.expect("ADDED", "d")
	})
}

func TestTimeouts(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		watch := s.watch(s.things(), "timeoutSeconds=1")
		for {
			kind, about, err := watch.next()
			if err == io.EOF { //nolint:errorlint // as the reader returns it
				return
			}
			if err != nil || kind != "BOOKMARK" {
				t.Fatalf("got %s of %v, %v", kind, about, err)
			}
		}
	})
}

// The history of the real server ends when etcd is compacted, which it refuses for versions
// that are in use by its caches; version 1 is always gone.
func TestOldVersions(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.create(s.things(), "a", "")
		if s.memory != nil {
			s.memory.Compact()
		}
		watch := s.watch(s.things(), "resourceVersion=1")
		kind, status, err := watch.next()
		if err != nil || kind != "ERROR" || field(status, "code") != int64(410) || field(status, "reason") != "Expired" {
			t.Errorf("got %s %v, %v", kind, status.Object, err)
		}
		if _, _, err := watch.next(); err == nil {
			t.Error("the watch goes on")
		}
	})
}

func TestPartialObjects(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.create(s.things(), "a", "")
		for path, kind := range map[string]string{s.things("a"): "PartialObjectMetadata", s.things(): "PartialObjectMetadataList"} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Accept", "application/json;as="+kind+";g=meta.k8s.io;v=v1,application/json")
			got := s.answer(request)
			if got.GetKind() != kind || got.GetAPIVersion() != "meta.k8s.io/v1" || field(got, "spec") != nil {
				t.Errorf("got %v", got.Object)
			}
		}
	})
}

func TestTwoVersions(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		made := s.create(s.things(), "a", `,"spec":{"size":1}`)
		watch := s.watch(s.path("things", "v2"), "resourceVersion="+made.GetResourceVersion())
		got := s.must(http.MethodGet, s.path("things", "v2", "a"), "", 200)
		if got.GetAPIVersion() != s.group+"/v2" || got.GetResourceVersion() != made.GetResourceVersion() || number64(got, "spec", "size") != 1 {
			t.Errorf("got %v", got.Object)
		}
		if same := s.merge(s.path("things", "v2", "a"), `{"spec":{"size":1}}`, 200); same.GetResourceVersion() != made.GetResourceVersion() {
			t.Error("a write without a change in the other version makes a version")
		}
		s.merge(s.path("things", "v2", "a"), `{"spec":{"size":2}}`, 200)
		if seen := watch.expect("MODIFIED", "a"); seen.GetAPIVersion() != s.group+"/v2" {
			t.Errorf("got %v", seen.Object)
		}
		if old := s.must(http.MethodGet, s.things("a"), "", 200); old.GetAPIVersion() != s.group+"/v1" || number64(old, "spec", "size") != 2 {
			t.Errorf("got %v", old.Object)
		}
		s.must(http.MethodGet, s.path("things", "v3", "a"), "", 404)
		s.must(http.MethodPost, s.path("things", "v2"), s.body("Thing", "b", ""), 400)
	})
}
