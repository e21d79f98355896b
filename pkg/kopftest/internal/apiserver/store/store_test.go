package store

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var things = schema.GroupResource{Group: "kopf.dev", Resource: "things"}

func thing(name, color string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": "ns", "name": name}, "spec": map[string]any{"color": color},
	}}
}

// commit stores or removes an object.
func commit(t *testing.T, s *Store, name string, after *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	key := types.NamespacedName{Namespace: "ns", Name: name}
	result, err := s.Commit(things, key, s.Get(things, key), after)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func summary(objects []*unstructured.Unstructured) string {
	text := ""
	for _, object := range objects {
		text += fmt.Sprintf("%s:%v:%s ", object.GetName(), object.Object["spec"].(map[string]any)["color"], object.GetResourceVersion())
	}
	return text
}

func TestFormerVersions(t *testing.T) {
	s := New()
	commit(t, s, "b", thing("b", "red"))
	commit(t, s, "a", thing("a", "red"))
	commit(t, s, "b", thing("b", "blue"))
	commit(t, s, "a", nil)
	for at, want := range map[uint64]string{0: "b:blue:4 ", 1: "", 2: "b:red:2 ", 3: "a:red:3 b:red:2 ", 4: "a:red:3 b:blue:4 ", 5: "b:blue:4 "} {
		found, version, err := s.List(things, at)
		if got := summary(found); err != nil || got != want || at != 0 && version != at {
			t.Errorf("version %d: got %q of version %d (%v), want %q", at, got, version, err, want)
		}
	}
	if _, _, err := s.List(things, 6); !errors.Is(err, ErrFuture) {
		t.Errorf("got %v", err)
	}
}

func TestEventsAreHistory(t *testing.T) {
	s := New()
	_, changed, err := s.Since(things, 1)
	if err != nil {
		t.Fatal(err)
	}
	first := commit(t, s, "a", thing("a", "red"))
	select {
	case <-changed:
	default:
		t.Error("the write is not announced")
	}
	commit(t, s, "a", thing("a", "blue"))
	last := commit(t, s, "a", nil)
	events, _, err := s.Since(things, 2)
	if err != nil || len(events) != 2 || events[0].Before != first || events[1].Object != last {
		t.Errorf("got %v, %v", events, err)
	}
	if last.GetResourceVersion() != "4" || summary([]*unstructured.Unstructured{last}) != "a:blue:4 " {
		t.Errorf("the last state is %v", last)
	}
	if events, _, err := s.Since(things, 4); err != nil || len(events) != 0 {
		t.Errorf("got %v, %v", events, err)
	}
}

func TestOnlyTheLatestStateCanBeReplaced(t *testing.T) {
	s := New()
	key := types.NamespacedName{Namespace: "ns", Name: "a"}
	first := commit(t, s, "a", thing("a", "red"))
	commit(t, s, "a", thing("a", "blue"))
	for name, before := range map[string]*unstructured.Unstructured{"a former state": first, "no state": nil} {
		if _, err := s.Commit(things, key, before, thing("a", "green")); !errors.Is(err, ErrChanged) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestCompactForgets(t *testing.T) {
	s := New()
	commit(t, s, "a", thing("a", "red"))
	commit(t, s, "a", thing("a", "blue"))
	s.Compact()
	if _, _, err := s.Since(things, 2); !errors.Is(err, ErrExpired) {
		t.Errorf("got %v", err)
	}
	if _, _, err := s.List(things, 2); !errors.Is(err, ErrExpired) {
		t.Errorf("got %v", err)
	}
	if events, _, err := s.Since(things, 3); err != nil || len(events) != 0 {
		t.Errorf("got %v, %v", events, err)
	}
	if found, _, err := s.List(things, 0); err != nil || summary(found) != "a:blue:3 " {
		t.Errorf("got %s, %v", summary(found), err)
	}
}
