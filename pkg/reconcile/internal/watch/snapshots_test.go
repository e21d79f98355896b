package watch

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
)

func TestStoreReportsChanges(t *testing.T) {
	known := func(t *testing.T, s *Stream) { _ = s.Replace([]any{seen(t, "u-1", "7")}, "7") }
	unknown := func(_ *testing.T, s *Stream) { _ = s.Replace(nil, "7") }
	tests := map[string]struct {
		before func(t *testing.T, s *Stream)
		happen func(t *testing.T, s *Stream)
		want   string
	}{
		"an object was listed initially": {
			func(*testing.T, *Stream) {}, known, "LISTED 7",
		},
		"an object was created": {
			unknown, func(t *testing.T, s *Stream) { _ = s.Add(seen(t, "u-1", "8")) }, "ADDED 8",
		},
		"an object was created during an interruption": {
			unknown, func(t *testing.T, s *Stream) { _ = s.Replace([]any{seen(t, "u-1", "8")}, "9") }, "ADDED 8",
		},
		"an object has changed": {
			known, func(t *testing.T, s *Stream) { _ = s.Update(seen(t, "u-1", "8")) }, "MODIFIED 8",
		},
		"an object has changed during an interruption": {
			known, func(t *testing.T, s *Stream) { _ = s.Replace([]any{seen(t, "u-1", "8")}, "9") }, "MODIFIED 8",
		},
		"an object was only listed again": {
			known, func(t *testing.T, s *Stream) { _ = s.Replace([]any{seen(t, "u-1", "7")}, "9") }, "",
		},
		"an object was replaced during an interruption": {
			known, func(t *testing.T, s *Stream) { _ = s.Replace([]any{seen(t, "u-2", "9")}, "9") }, "DELETED 7, ADDED 9",
		},
		"an object was deleted": {
			known, func(t *testing.T, s *Stream) { _ = s.Delete(seen(t, "u-1", "8")) }, "DELETED 8",
		},
		"an object was deleted during an interruption": {
			known, func(_ *testing.T, s *Stream) { _ = s.Replace(nil, "9") }, "DELETED 7",
		},
		"a backup has the object in an earlier version": {
			known, func(t *testing.T, s *Stream) { _ = s.Replace([]any{seen(t, "u-1", "5")}, "6") }, "ANEW, MODIFIED 5",
		},
		"a backup has versions that are higher by now, but not of the object": {
			known, func(t *testing.T, s *Stream) { _ = s.Replace([]any{seen(t, "u-1", "5")}, "12") }, "ANEW, MODIFIED 5",
		},
		"a backup has the object as it is, but not what came after it": {
			func(t *testing.T, s *Stream) {
				known(t, s)
				_ = s.Bookmark("9")
			},
			func(t *testing.T, s *Stream) { _ = s.Replace([]any{seen(t, "u-1", "7")}, "8") }, "ANEW",
		},
		"a backup does not have the object": {
			known, func(_ *testing.T, s *Stream) { _ = s.Replace(nil, "3") }, "DELETED 7",
		},
		"another cluster has another object of the name": {
			known, func(t *testing.T, s *Stream) { _ = s.Replace([]any{seen(t, "u-2", "3")}, "3") }, "ANEW, DELETED 7, ADDED 3",
		},
		"a list shows no other history after that of a backup": {
			func(t *testing.T, s *Stream) {
				known(t, s)
				_ = s.Replace([]any{seen(t, "u-1", "5")}, "6")
			},
			func(t *testing.T, s *Stream) { _ = s.Replace([]any{seen(t, "u-1", "5")}, "8") }, "",
		},
		"a backup has the version with another content": {
			func(t *testing.T, s *Stream) {
				known(t, s)
				_ = s.Bookmark("9")
			},
			func(t *testing.T, s *Stream) {
				other, err := object.ParseSnapshot([]byte(`{"metadata":{"namespace":"ns","name":"a","uid":"u-1","resourceVersion":"7","labels":{"a":"b"}}}`))
				if err != nil {
					t.Fatal(err)
				}
				_ = s.Replace([]any{other}, "8")
			}, "ANEW, MODIFIED 7",
		},
		"an object is created after a deletion": {
			func(t *testing.T, s *Stream) {
				known(t, s)
				_ = s.Delete(seen(t, "u-1", "8"))
			},
			func(t *testing.T, s *Stream) { _ = s.Add(seen(t, "u-2", "9")) }, "ADDED 9",
		},
		"an object is created after a backup": {
			func(t *testing.T, s *Stream) {
				known(t, s)
				_ = s.Replace(nil, "3")
			},
			func(t *testing.T, s *Stream) { _ = s.Add(seen(t, "u-2", "4")) }, "ADDED 4",
		},
		"a watch shows an earlier version": {
			known, func(t *testing.T, s *Stream) { _ = s.Update(seen(t, "u-1", "5")) }, "INTERRUPT, ANEW, MODIFIED 5",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := &recorder{}
			s := NewStream(t.Context(), NewResource(kex, nil), "", r)
			s.interrupt = func() { r.events = append(r.events, "INTERRUPT") }
			test.before(t, s)
			r.events = nil
			test.happen(t, s)
			if got := strings.Join(r.events, ", "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// A pass reads an object from the store, and its handlers read the indices: what they find there must
// not be older than the object.
func TestObjectIsIndexedBeforeItCanBeRead(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, s *Stream){
		"by the watch":          func(t *testing.T, s *Stream) { _ = s.Update(seen(t, "u-1", "8")) },
		"by a list":             func(t *testing.T, s *Stream) { _ = s.Replace([]any{seen(t, "u-1", "8")}, "9") },
		"by another object":     func(t *testing.T, s *Stream) { _ = s.Replace([]any{seen(t, "u-2", "8")}, "9") },
		"by a list of a backup": func(t *testing.T, s *Stream) { _ = s.Replace([]any{seen(t, "u-1", "5")}, "6") },
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{}
			s := NewStream(t.Context(), NewResource(kex, nil), "", r)
			known := seen(t, "u-1", "7")
			_ = s.Replace([]any{known}, "7")
			indexed := 0
			r.indexed = func(event object.WatchEvent) {
				indexed++
				if visible := s.kept.get(nameOf(known)).GetResourceVersion(); visible != "7" {
					t.Errorf("%s can be read while %s %s is indexed", visible, event.Type, event.Snapshot.GetResourceVersion())
				}
			}
			change(t, s)
			if indexed == 0 {
				t.Error("nothing is indexed")
			}
		})
	}
}

func TestDeletedObjectIsIndexed(t *testing.T) {
	for name, deletion := range map[string]func(t *testing.T, s *Stream){
		"by the watch": func(t *testing.T, s *Stream) { _ = s.Delete(seen(t, "u-1", "8")) },
		"by a list":    func(_ *testing.T, s *Stream) { _ = s.Replace(nil, "9") },
	} {
		t.Run(name, func(t *testing.T) {
			var indexed []string
			r := &recorder{indexed: func(event object.WatchEvent) { indexed = append(indexed, string(event.Type)) }}
			s := NewStream(t.Context(), NewResource(kex, nil), "", r)
			_ = s.Replace([]any{seen(t, "u-1", "7")}, "7")
			if s.kept.size() != 1 || len(s.kept.all()) != 1 {
				t.Errorf("got %v", s.kept.all())
			}
			indexed = nil
			deletion(t, s)
			if strings.Join(indexed, " ") != "DELETED" || s.kept.size() != 0 || len(s.kept.all()) != 0 || s.kept.get(nameOf(seen(t, "u-1", "7"))) != nil {
				t.Errorf("%q is indexed, and %v are left", indexed, s.kept.all())
			}
		})
	}
}

// The API server can show other contents of the same versions, as when it begins to convert objects.
func TestListThatIsAskedForIsCompared(t *testing.T) {
	var got []string
	kept := &snapshots{
		index: func(object.WatchEvent) {}, beginAnew: func(*object.Snapshot) {},
		observe: func(event object.WatchEvent) {
			got = append(got, string(event.Type)+" "+event.Snapshot.GetResourceVersion())
		},
		objects: map[types.NamespacedName]*object.Snapshot{}, listed: true,
	}
	content := func(size string) *object.Snapshot {
		read, err := object.ParseSnapshot([]byte(`{"metadata":{"name":"one","uid":"u","resourceVersion":"7"},"size":` + size + `}`))
		if err != nil {
			t.Fatal(err)
		}
		return read
	}
	list := func(size string, asked bool) {
		done := make(chan struct{})
		if asked {
			kept.relisted.Store(&done)
		}
		kept.replace([]*object.Snapshot{content(size)}, "9", false)
		if !asked {
			return
		}
		select {
		case <-done:
		default:
			t.Error("the one who asks still waits")
		}
	}
	list("1", false)
	list("2", false) // cannot happen without a reason, and is not looked for
	list("2", true)
	list("3", true)
	list("4", false)
	if want := "ADDED 7, MODIFIED 7"; strings.Join(got, ", ") != want || kept.all()[0].Body().Raw()["size"] != int64(4) {
		t.Errorf("got %v", got)
	}
}

// Under selectors, the API server sends the same for an object that is deleted, and for one that is not selected anymore.
func TestObjectVanishesFromAWatchWithSelectors(t *testing.T) {
	for name, test := range map[string]struct {
		happen func(t *testing.T, s *Stream)
		want   string
	}{
		"by the watch": {func(t *testing.T, s *Stream) { _ = s.Delete(seen(t, "u-1", "8")) }, "VANISHED 8"},
		"by a list":    {func(_ *testing.T, s *Stream) { _ = s.Replace(nil, "9") }, "VANISHED 7"},
		"and another object has its name": {
			func(t *testing.T, s *Stream) { _ = s.Replace([]any{seen(t, "u-2", "9")}, "9") }, "DELETED 7, ADDED 9",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var indexed []string
			recorded := &recorder{indexed: func(event object.WatchEvent) {
				indexed = append(indexed, string(event.Type)+" "+event.Snapshot.GetResourceVersion())
			}}
			r := NewResource(kex, nil)
			r.Selection = kube.Selection{Labels: "app=web"}
			s := NewStream(t.Context(), r, "", recorded)
			_ = s.Replace([]any{seen(t, "u-1", "7")}, "7")
			recorded.events, indexed = nil, nil
			test.happen(t, s)
			if got := strings.Join(recorded.events, ", "); got != test.want || strings.Join(indexed, ", ") != test.want {
				t.Errorf("got %q, and %q is indexed, want %q", got, indexed, test.want)
			}
		})
	}
}
