package queue

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/pkg/model/object"
)

const (
	added    = watch.Added
	modified = watch.Modified
	deleted  = watch.Deleted
	listed   = watch.EventType("")
)

func keyOf(name string) object.Key {
	return object.Key{Resource: "kopfexamples.v1.kopf.dev", NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}
}

func snapshot(t testing.TB, version int) *object.Snapshot {
	t.Helper()
	s, err := object.ParseSnapshot(fmt.Appendf(nil, `{"metadata":{"name":"a","resourceVersion":"%d"}}`, version))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// texts returns the type and the version of each event.
func texts(line []object.WatchEvent) string {
	var events []string
	for _, o := range line {
		kind := string(o.Type)
		if kind == "" {
			kind = "LISTED"
		}
		events = append(events, kind+" "+o.Snapshot.GetResourceVersion())
	}
	return strings.Join(events, ", ")
}

func TestBacklogKeepsImportantEvents(t *testing.T) {
	tests := map[string]struct {
		open   bool
		limit  int
		events []watch.EventType // their versions are 1, 2, 3, …
		want   string
	}{
		"nothing has happened":        {true, 3, nil, ""},
		"everything is kept in order": {true, 3, []watch.EventType{added, modified, deleted}, "ADDED 1, MODIFIED 2, DELETED 3"},
		"the oldest one is dropped":   {true, 3, []watch.EventType{added, modified, modified, modified}, "ADDED 1, MODIFIED 3, MODIFIED 4"},
		"the oldest one is dropped again": {
			true, 2, []watch.EventType{modified, modified, modified, modified, modified}, "MODIFIED 4, MODIFIED 5",
		},
		"the last one is never dropped": {true, 2, []watch.EventType{added, deleted, added, modified}, "ADDED 1, DELETED 2, ADDED 3, MODIFIED 4"},
		"additions and deletions are never dropped": {
			true, 2, []watch.EventType{added, deleted, added, deleted}, "ADDED 1, DELETED 2, ADDED 3, DELETED 4",
		},
		"listed objects are never dropped":    {true, 1, []watch.EventType{listed, modified, modified}, "LISTED 1, MODIFIED 3"},
		"the last state is kept on standby":   {false, 3, []watch.EventType{listed, modified, modified}, "MODIFIED 3"},
		"a single event is kept on standby":   {false, 3, []watch.EventType{listed}, "LISTED 1"},
		"nothing is kept for deleted objects": {false, 3, []watch.EventType{listed, modified, deleted}, ""},
		"nothing is kept for vanished ones":   {false, 3, []watch.EventType{listed, modified, object.Vanished}, ""},
		"a vanished object is never dropped":  {true, 1, []watch.EventType{object.Vanished, modified, modified}, "VANISHED 1, MODIFIED 3"},
		"a recreated object is kept":          {false, 3, []watch.EventType{listed, deleted, added}, "ADDED 3"},
		"a limit of one keeps one":            {true, 1, []watch.EventType{modified, modified}, "MODIFIED 2"},
		"a limit of zero keeps one":           {true, 0, []watch.EventType{modified}, "MODIFIED 1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := NewBacklog(test.limit)
			if test.open {
				l.Open()
			}
			for i, kind := range test.events {
				l.Push(keyOf("a"), object.WatchEvent{Type: kind, Snapshot: snapshot(t, i+1)})
			}
			if got := texts(l.Take(keyOf("a"))); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestBacklogSeparatesObjects(t *testing.T) {
	l := NewBacklog(3)
	l.Open()
	l.Push(keyOf("a"), object.WatchEvent{Type: added, Snapshot: snapshot(t, 1)})
	l.Push(keyOf("b"), object.WatchEvent{Type: added, Snapshot: snapshot(t, 2)})
	if a, again, b := texts(l.Take(keyOf("a"))), texts(l.Take(keyOf("a"))), texts(l.Take(keyOf("b"))); a != "ADDED 1" || again != "" || b != "ADDED 2" {
		t.Errorf("got %q, %q, %q", a, again, b)
	}
	if len(l.waiting) != 0 {
		t.Errorf("%d objects are left", len(l.waiting))
	}
}

func TestEventsKeptOnStandbyAreContinued(t *testing.T) {
	l := NewBacklog(3)
	l.Push(keyOf("a"), object.WatchEvent{Type: listed, Snapshot: snapshot(t, 1)})
	l.Push(keyOf("a"), object.WatchEvent{Type: modified, Snapshot: snapshot(t, 2)})
	l.Open()
	l.Push(keyOf("a"), object.WatchEvent{Type: modified, Snapshot: snapshot(t, 3)})
	if got := texts(l.Take(keyOf("a"))); got != "MODIFIED 2, MODIFIED 3" {
		t.Errorf("got %q", got)
	}
}

// What could not be processed comes before what has happened since.
func TestEventsCanBePutBack(t *testing.T) {
	for paused, want := range map[bool]string{false: "ADDED 1, VANISHED 2, ADDED 3", true: "ADDED 3"} {
		l := NewBacklog(3)
		l.Open()
		l.Push(keyOf("a"), object.WatchEvent{Type: added, Snapshot: snapshot(t, 1)})
		l.Push(keyOf("a"), object.WatchEvent{Type: object.Vanished, Snapshot: snapshot(t, 2)})
		taken := l.Take(keyOf("a"))
		if paused {
			l.Shut()
		}
		l.Push(keyOf("a"), object.WatchEvent{Type: added, Snapshot: snapshot(t, 3)})
		l.PutBack(keyOf("a"), taken)
		if got := texts(l.Take(keyOf("a"))); got != want {
			t.Errorf("paused: %t: got %q, want %q", paused, got, want)
		}
	}
}

func TestBacklogIsSafeForConcurrentUse(t *testing.T) {
	l := NewBacklog(1000)
	var watches, workers sync.WaitGroup
	var mu sync.Mutex
	var got []string
	l.Open()
	for _, name := range []string{"a", "b"} {
		watches.Go(func() {
			for i := range 100 {
				l.Push(keyOf(name), object.WatchEvent{Type: modified, Snapshot: snapshot(t, i)})
			}
		})
		workers.Go(func() {
			for range 100 {
				line := l.Take(keyOf(name))
				mu.Lock()
				for _, o := range line {
					got = append(got, name+o.Snapshot.GetResourceVersion())
				}
				mu.Unlock()
			}
		})
	}
	watches.Wait()
	workers.Wait()
	for _, name := range []string{"a", "b"} {
		for _, o := range l.Take(keyOf(name)) {
			got = append(got, name+o.Snapshot.GetResourceVersion())
		}
	}
	if slices.Sort(got); len(slices.Compact(got)) != 200 {
		t.Errorf("got %d events of 200", len(got))
	}
}
