package page

import (
	"io"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// The intervals of a stream of changes.
const (
	// changeInterval is the shortest time between two messages: a page is loaded again after each of them.
	changeInterval = time.Second
	// factsInterval is how often a page is loaded that also shows what is not watched, such as leases and children.
	factsInterval = 10 * time.Second
	// silence is how long a stream can have no message: proxies end silent ones.
	silence = 15 * time.Second
)

// streamChanges sends a message whenever a page shows something else. The browser then loads the page again.
func (p *Page) streamChanges(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	v := &viewer{
		resource: query.Get("resource"), object: types.NamespacedName{Namespace: query.Get("namespace"), Name: query.Get("name")},
		changed: make(chan struct{}, 1),
	}
	defer p.audience.join(v)()
	controller := http.NewResponseController(w)
	_ = controller.SetWriteDeadline(time.Time{}) // not every writer has one
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	var often <-chan time.Time
	if query.Has("facts") {
		ticker := time.NewTicker(factsInterval)
		defer ticker.Stop()
		often = ticker.C
	}
	alive := time.NewTicker(silence)
	defer alive.Stop()
	for message := ": welcome\n\n"; ; {
		if _, err := io.WriteString(w, message); err != nil {
			return
		}
		if err := controller.Flush(); err != nil {
			return
		}
		if message == changeMessage {
			select {
			case <-time.After(changeInterval):
			case <-r.Context().Done():
				return
			case <-p.audience.closed:
				return
			}
		}
		select {
		case <-v.changed:
			message = changeMessage
		case <-often:
			message = changeMessage
		case <-alive.C:
			message = ": alive\n\n"
		case <-r.Context().Done():
			return
		case <-p.audience.closed:
			return
		}
	}
}

// changeMessage is an event with the name change. Browsers ignore events without data.
const changeMessage = "event: change\ndata: now\n\n"
