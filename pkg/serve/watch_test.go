package serve_test

import (
	"testing"

	"github.com/fsnotify/fsnotify"

	"github.com/kopf-go/kopf/pkg/serve"
)

// What an operator writes while it runs must not start it again.
func TestOnlySourcesAreWatched(t *testing.T) {
	for name, want := range map[string]bool{
		"operator.yaml": true, "handlers.py": true, "create.sh": true, "template": true,
		"kopf.log": false, "cache.db": false, "cache.sqlite3": false, "handlers.pyc": false, "__pycache__": false, ".handlers.py.swp": false, "handlers.py~": false,
	} {
		if got := serve.IsSource(fsnotify.Event{Name: "operators/" + name, Op: fsnotify.Write}); got != want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
