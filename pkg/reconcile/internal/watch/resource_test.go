package watch

import (
	"testing"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/settings"
)

// A write has shown that the definition of a resource has changed: later writes know it, and
// the resource is discovered again.
func TestChangedStatusSubresourceIsDiscovered(t *testing.T) {
	for _, status := range []bool{true, false} {
		w := New(Config{Settings: settings.Settings{}.WithDefaults(), Logger: logr.Discard(), Consumer: &recorder{}})
		w.Settings.Scope.Namespaces = []string{"none-*"} // there are no streams
		found := kex
		found.Status = status
		if err := w.watchResource(t.Context(), found); err != nil {
			t.Fatal(err)
		}
		r := w.active[found.String()]
		if r.HasStatusSubresource() != status {
			t.Errorf("got %v", r.HasStatusSubresource())
		}
		r.SetStatusSubresource(!status)
		if r.HasStatusSubresource() == status || len(w.rediscover) != 1 || r.Status != status {
			t.Errorf("got %v, %d, %v", r.HasStatusSubresource(), len(w.rediscover), r.Status)
		}
		if r.SetStatusSubresource(status); r.HasStatusSubresource() != status {
			t.Errorf("got %v", r.HasStatusSubresource())
		}
	}
}

func TestStreamOfNamespaceIsFound(t *testing.T) {
	tests := map[string]struct {
		watched []string
		asked   string
		want    string // "none" if there is none
	}{
		"the stream of the cluster":                      {[]string{""}, "ns", ""},
		"the stream of the namespace":                    {[]string{"other", "ns"}, "ns", "ns"},
		"another namespace":                              {[]string{"other"}, "ns", "none"},
		"no stream":                                      {nil, "ns", "none"},
		"cluster-scoped objects need the cluster stream": {[]string{"ns"}, "", "none"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := NewResource(kex, nil)
			for _, namespace := range test.watched {
				addStream(t, r, namespace)
			}
			got := "none"
			if s := r.streams.of(test.asked); s != nil {
				got = s.namespace
			}
			if got != test.want || r.IsWatched(test.asked) != (test.want != "none") {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestCachedObjects(t *testing.T) {
	r := NewResource(kex, nil)
	s, one := addStream(t, r, "ns"), seen(t, "u-1", "7")
	if err := s.Add(one); err != nil {
		t.Fatal(err)
	}
	key := r.Key(one)
	if key != keyOf("a") || r.Cached(key.NamespacedName) != one || len(r.Objects()) != 1 || !r.Has(key.NamespacedName, "u-1") {
		t.Errorf("the object is not found: %v", key)
	}
	if r.Has(key.NamespacedName, "u-2") || r.Cached(keyOf("b").NamespacedName) != nil {
		t.Error("another object is found")
	}
	r.streams.remove("ns")
	if r.Cached(key.NamespacedName) != nil {
		t.Error("the object is found although it is not watched anymore")
	}
}

func TestResourceStaysWithTheSameObjectsAndHandlers(t *testing.T) {
	one, two := selector.New("kex"), selector.New("kopfexamples")
	found := kex
	found.Selectors = []selector.Selector{one, two}
	r := NewResource(found, nil)
	reordered, fewer, other, status := found, found, found, found
	reordered.Selectors = []selector.Selector{two, one}
	fewer.Selectors = []selector.Selector{one}
	other.Selectors = []selector.Selector{one, selector.New("else")}
	status.Status = !found.Status
	if !r.isSame(found) || !r.isSame(reordered) {
		t.Error("the same resource must stay")
	}
	if r.isSame(fewer) || r.isSame(other) || r.isSame(status) {
		t.Error("another resource, or one with other handlers, must not stay")
	}
}
