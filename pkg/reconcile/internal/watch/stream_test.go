package watch

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/model/selector"
)

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

func TestStatusesHaveTheLastError(t *testing.T) {
	r := NewResource(kex, nil)
	s := addStream(t, r, "ns")
	refused, down := errors.New("refused"), apierrors.NewServiceUnavailable("down")
	for i, step := range []struct {
		err              error
		isNew, recovered bool
	}{{nil, false, false}, {refused, true, false}, {refused, false, false}, {nil, false, true}, {nil, false, false}, {refused, true, false}, {errors.New("refused again"), false, false}, {down, true, false}} {
		if isNew, recovered := s.attempts.replaceError(step.err); isNew != step.isNew || recovered != step.recovered {
			t.Errorf("%d. %v: new %t, recovered %t", i+1, step.err, isNew, recovered)
		}
	}
	got := s.status()
	if got.Namespace != "ns" || got.Listed || got.Err == nil {
		t.Errorf("got %+v", got)
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

func TestResourcesThatAreNotReadyAreNoErrors(t *testing.T) {
	tests := map[string]struct {
		err  error
		want bool
	}{
		"the resource is not served yet":  {apierrors.NewNotFound(schema.GroupResource{Resource: "kex"}, ""), true},
		"the storage is initialized, 429": {apierrors.NewTooManyRequests("storage is (re)initializing", 1), true},
		"the storage is initialized, 503": {apierrors.NewServiceUnavailable("storage is (re)initializing"), true},
		"the API server is overloaded":    {apierrors.NewTooManyRequests("too many requests", 1), false},
		"the API server is unavailable":   {apierrors.NewServiceUnavailable("down"), false},
		"the resource may not be watched": {apierrors.NewForbidden(schema.GroupResource{}, "", nil), false},
		"the connection cannot be opened": {errors.New("refused"), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := isNotReady(test.err); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
