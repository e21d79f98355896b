package watch

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/cache"
)

func TestListenerConvertsNotifications(t *testing.T) {
	tests := map[string]struct {
		happen func(t *testing.T, l cache.ResourceEventHandler)
		want   string
	}{
		"an object was listed initially": {
			func(t *testing.T, l cache.ResourceEventHandler) { l.OnAdd(seen(t, "u-1", "7"), true) }, "LISTED 7",
		},
		"an object was created": {
			func(t *testing.T, l cache.ResourceEventHandler) { l.OnAdd(seen(t, "u-1", "7"), false) }, "ADDED 7",
		},
		"an object has changed": {
			func(t *testing.T, l cache.ResourceEventHandler) { l.OnUpdate(seen(t, "u-1", "7"), seen(t, "u-1", "8")) }, "MODIFIED 8",
		},
		"an object was only listed again": {
			func(t *testing.T, l cache.ResourceEventHandler) { l.OnUpdate(seen(t, "u-1", "7"), seen(t, "u-1", "7")) }, "",
		},
		"an object was replaced during an interruption": {
			func(t *testing.T, l cache.ResourceEventHandler) { l.OnUpdate(seen(t, "u-1", "7"), seen(t, "u-2", "9")) }, "DELETED 7, ADDED 9",
		},
		"an object was deleted": {
			func(t *testing.T, l cache.ResourceEventHandler) { l.OnDelete(seen(t, "u-1", "8")) }, "DELETED 8",
		},
		"an object was deleted during an interruption": {
			func(t *testing.T, l cache.ResourceEventHandler) {
				l.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/a", Obj: seen(t, "u-1", "7")})
			}, "DELETED 7",
		},
		"an unknown object was deleted": {
			func(_ *testing.T, l cache.ResourceEventHandler) {
				l.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/a"})
			}, "",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := &recorder{}
			test.happen(t, Listener(t.Context(), NewResource(kex, nil), r))
			if got := strings.Join(r.events, ", "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
