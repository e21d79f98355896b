package watch

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func isWanted(o *metav1.PartialObjectMetadata) bool { return o.Labels["ignored"] == "" }

func TestOnlyAnotherVersionIsAChange(t *testing.T) {
	at := func(version string) any {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "one", ResourceVersion: version}}
	}
	ignored := func(name, version string) any {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version, Labels: map[string]string{"ignored": "yes"}}}
	}
	tests := map[string]struct {
		happens func(n *nameStream) error
		changed bool
		names   []string
	}{
		"a new object":                       {func(n *nameStream) error { return n.Add(at("3")) }, true, []string{"one"}},
		"a change":                           {func(n *nameStream) error { return n.Update(at("3")) }, true, []string{"one"}},
		"a deletion":                         {func(n *nameStream) error { return n.Delete(at("3")) }, true, []string{}},
		"the same object, listed again":      {func(n *nameStream) error { return n.Replace([]any{at("2")}, "4") }, false, []string{"one"}},
		"it does not matter anymore":         {func(n *nameStream) error { return n.Update(ignored("one", "3")) }, true, []string{}},
		"another one does not matter":        {func(n *nameStream) error { return n.Add(ignored("two", "3")) }, false, []string{"one"}},
		"it does not matter in a list":       {func(n *nameStream) error { return n.Replace([]any{ignored("one", "3")}, "4") }, true, []string{}},
		"a change that was missed":           {func(n *nameStream) error { return n.Replace([]any{at("3")}, "4") }, true, []string{"one"}},
		"a deletion that was missed":         {func(n *nameStream) error { return n.Replace(nil, "4") }, true, []string{}},
		"the same object in another history": {func(n *nameStream) error { return n.Replace([]any{at("2")}, "1") }, true, []string{"one"}},
		"the passing of time":                {func(n *nameStream) error { return n.Bookmark("4") }, false, []string{"one"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			changes := 0
			n := newStream("", nil, newNames(isWanted, func() { changes++ }))
			if err := n.Replace([]any{at("2")}, "2"); err != nil || changes != 1 {
				t.Fatalf("%d changes, %v", changes, err)
			}
			<-n.Listed()
			if err := test.happens(n); err != nil || (changes == 2) != test.changed || !slices.Equal(n.kept.sorted(), test.names) {
				t.Errorf("%d changes, %q, %v", changes, n.kept.sorted(), err)
			}
		})
	}
}
