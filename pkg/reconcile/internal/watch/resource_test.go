package watch

import (
	"testing"

	"github.com/go-logr/logr"

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
