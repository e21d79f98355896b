package discovery

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

func TestOnlyAnotherVersionIsAChange(t *testing.T) {
	at := func(version string) any {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "one", ResourceVersion: version}}
	}
	tests := map[string]struct {
		happens func(cache.ResourceEventHandler)
		want    int
	}{
		"an object of the first list":     {func(h cache.ResourceEventHandler) { h.OnAdd(at("1"), true) }, 1},
		"a new object":                    {func(h cache.ResourceEventHandler) { h.OnAdd(at("1"), false) }, 1},
		"a change":                        {func(h cache.ResourceEventHandler) { h.OnUpdate(at("1"), at("2")) }, 1},
		"the same object, listed again":   {func(h cache.ResourceEventHandler) { h.OnUpdate(at("2"), at("2")) }, 0},
		"a deletion":                      {func(h cache.ResourceEventHandler) { h.OnDelete(at("2")) }, 1},
		"a deletion that nobody has seen": {func(h cache.ResourceEventHandler) { h.OnDelete(cache.DeletedFinalStateUnknown{Key: "one"}) }, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			changes := 0
			test.happens(onChange(func() { changes++ }))
			if changes != test.want {
				t.Errorf("%d changes, want %d", changes, test.want)
			}
		})
	}
}
