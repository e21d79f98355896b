package watch

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOnlyAnotherVersionIsAChange(t *testing.T) {
	at := func(version string) any {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "one", ResourceVersion: version}}
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
		"a change that was missed":           {func(n *nameStream) error { return n.Replace([]any{at("3")}, "4") }, true, []string{"one"}},
		"a deletion that was missed":         {func(n *nameStream) error { return n.Replace(nil, "4") }, true, []string{}},
		"the same object in another history": {func(n *nameStream) error { return n.Replace([]any{at("2")}, "1") }, true, []string{"one"}},
		"the passing of time":                {func(n *nameStream) error { return n.Bookmark("4") }, false, []string{"one"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			changes := 0
			n := newStream("", newNames(func() { changes++ }))
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
