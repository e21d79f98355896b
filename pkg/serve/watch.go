package serve

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settleTime is how long files must not change before a change counts: editors write in several steps.
const settleTime = 200 * time.Millisecond

// watcher notices changes of files, and of what is next to them: programs of workers, for example.
type watcher struct {
	changed chan []string
	notify  *fsnotify.Watcher
}

// newWatcher watches the folders of files. A file that is replaced is noticed there.
func newWatcher(files []string) (*watcher, error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("files cannot be watched: %w", err)
	}
	w := &watcher{changed: make(chan []string), notify: notify}
	for _, file := range files {
		if err := notify.Add(filepath.Dir(file)); err != nil {
			return nil, fmt.Errorf("the folder of %s cannot be watched: %w", file, err)
		}
	}
	go w.run()
	return w, nil
}

func (w *watcher) close() { _ = w.notify.Close() } // nothing is lost

// run collects the names of changed files until nothing has changed for a while.
func (w *watcher) run() {
	changed := map[string]bool{}
	var settled <-chan time.Time
	var report chan []string
	for {
		select {
		case event, open := <-w.notify.Events:
			if !open {
				return
			}
			if isSource(event) {
				changed[event.Name] = true
				settled = time.After(settleTime)
				report = nil
			}
		case <-settled:
			settled = nil
			report = w.changed
		case report <- slices.Sorted(maps.Keys(changed)):
			clear(changed)
			report = nil
		case _, open := <-w.notify.Errors: // an overflow, for example: the next change is noticed
			if !open {
				return
			}
		}
	}
}

// isSource reports whether an event is about what people write: not about the files of editors, bytecode, and what programs
// write while they run, such as logs, which would start them again for ever.
func isSource(event fsnotify.Event) bool {
	name := filepath.Base(event.Name)
	isWritten := slices.Contains([]string{".pyc", ".log", ".tmp", ".db", ".sqlite", ".sqlite3"}, filepath.Ext(name))
	return !event.Has(fsnotify.Chmod) && !strings.HasPrefix(name, ".") && !strings.HasSuffix(name, "~") && !isWritten && name != "__pycache__"
}
