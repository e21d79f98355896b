package serve

import (
	"context"
	"slices"
	"sync"

	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/serve/worker"
)

// keepers has the workers that keep a memo of an object.
var keepers = memo.New(nil, func(*keepersOf) *keepersOf { return &keepersOf{} })

type keepersOf struct {
	mu      sync.Mutex
	workers []*worker.Worker
}

// add lets a worker know when the object is gone.
func (k *keepersOf) add(w *worker.Worker, uid string, of *memo.Values) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if slices.Contains(k.workers, w) {
		return
	}
	k.workers = append(k.workers, w)
	context.AfterFunc(of.Context(), func() { w.Gone(uid) })
}
