package relist

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// event returns an event about an object without a namespace.
func event(kind watch.EventType, name string, uid types.UID, version string) watch.Event {
	return watch.Event{Type: kind, Object: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid, ResourceVersion: version}}}
}

func bookmark(version, initialEnd string) watch.Event {
	return watch.Event{Type: watch.Bookmark, Object: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: version, Annotations: map[string]string{metav1.InitialEventsAnnotationKey: initialEnd},
	}}}
}

func TestLastWriteIsTheProof(t *testing.T) {
	first := proof{types.NamespacedName{Name: "a"}, "1", "7"}
	tests := map[string]struct {
		events []watch.Event
		want   proof
	}{
		"nothing":                 {nil, proof{}},
		"a creation":              {[]watch.Event{event(watch.Added, "a", "1", "7")}, first},
		"a change":                {[]watch.Event{event(watch.Added, "b", "2", "6"), event(watch.Modified, "a", "1", "7")}, first},
		"a deletion after it":     {[]watch.Event{event(watch.Added, "a", "1", "7"), event(watch.Deleted, "b", "2", "8")}, first},
		"a bookmark after it":     {[]watch.Event{event(watch.Added, "a", "1", "7"), bookmark("9", "")}, first},
		"an error after it":       {[]watch.Event{event(watch.Added, "a", "1", "7"), {Type: watch.Error, Object: &metav1.Status{}}}, first},
		"what is no object":       {[]watch.Event{event(watch.Added, "a", "1", "7"), {Type: watch.Modified, Object: &metav1.Status{}}}, first},
		"the end of a list":       {[]watch.Event{event(watch.Added, "a", "1", "7"), bookmark("9", "true")}, proof{}},
		"a creation after a list": {[]watch.Event{bookmark("6", "true"), event(watch.Added, "a", "1", "7")}, first},
	}
	for name, test := range tests {
		var got proof
		for _, one := range test.events {
			got.add(one)
		}
		if got != test.want {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestProofHoldsIfTheVersionHasTheObject(t *testing.T) {
	item := func(uid types.UID, version string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: uid, ResourceVersion: version}}
	}
	ours := item("1", "7")
	tests := map[string]struct {
		answer runtime.Object
		err    error
		want   bool
	}{
		"the object":                  {&metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{ours}}, nil, true},
		"the object, and another one": {&metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{item("2", "7"), ours}}, nil, true},
		"another object":              {&metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{item("2", "7")}}, nil, false},
		"another version":             {&metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{item("1", "6")}}, nil, false},
		"nothing":                     {&metav1.PartialObjectMetadataList{}, nil, false},
		"an error":                    {&metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{ours}}, errors.New("expired"), false},
		"what is no list":             {&metav1.Status{}, nil, false},
		"a list of other things":      {&metav1.List{Items: []runtime.RawExtension{{Object: &metav1.Status{}}}}, nil, false},
	}
	for name, test := range tests {
		var asked metav1.ListOptions
		p := proof{types.NamespacedName{Name: "a"}, "1", "7"}
		got := p.holds(t.Context(), func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
			asked = options
			return test.answer, test.err
		})
		want := metav1.ListOptions{FieldSelector: "metadata.name=a", ResourceVersion: "7", ResourceVersionMatch: metav1.ResourceVersionMatchExact}
		if got != test.want || asked != want {
			t.Errorf("%s: got %t for %+v", name, got, asked)
		}
	}
}
