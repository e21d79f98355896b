// Package undeclared reports handlers that are not declared, but have left something: progress on
// objects, because an upgrade of the operator has renamed or removed them while they were handling
// the objects, or children. Nothing else takes care of that.
//
// It keeps no data about single objects: the engine asks once per object.
package undeclared

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// reportDelay is the time from the first object to the report, so that it counts the objects
// of a start.
const reportDelay = 5 * time.Second

// Handlers counts the objects of each handler that is not declared. It logs each handler once.
// It is safe for concurrent use.
type Handlers struct {
	Logger logr.Logger

	mu      sync.Mutex
	objects map[handler]int // seen so far
	// renamed contains what may have happened to a handler.
	renamed map[handler]string
	// reported is set for handlers that were logged. Later objects add nothing.
	reported map[handler]bool
	timer    *time.Timer // runs before a report
}

// handler is a handler of a resource, and what it has left.
type handler struct {
	resource string
	name     string // of the record, or the id; empty if it is unknown
	children bool   // and no progress
}

// Add adds an object of a resource, with the names of its unknown records, and the ids of the
// handlers that are declared for it.
func (h *Handlers) Add(resource string, names, declared []string) {
	for _, name := range names {
		h.add(handler{resource: resource, name: name}, Remark(name, declared))
	}
}

// AddChild adds a child that a handler of a kind has left, or an object with children of a handler
// whose id is unknown.
func (h *Handlers) AddChild(parents, id string) {
	h.add(handler{resource: parents, name: id, children: true}, "")
}

func (h *Handlers) add(one handler, remark string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reported[one] {
		return
	}
	if h.objects == nil {
		h.objects = map[handler]int{}
		h.reported = map[handler]bool{}
		h.renamed = map[handler]string{}
	}
	h.objects[one]++
	h.renamed[one] = remark
	if h.timer == nil {
		h.timer = time.AfterFunc(reportDelay, h.report)
	}
}

// report logs the handlers that were found.
func (h *Handlers) report() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.timer = nil
	for _, one := range slices.SortedFunc(maps.Keys(h.objects), compare) {
		switch {
		case one.children && one.name == "":
			h.Logger.Error(nil, "Objects have children of a function of kopf.Ensure, but none is declared for their resource. The children are left alone, unless another operator takes care of them: "+
				"declare the function again, or delete the children; the command explain lists them.", "resource", one.resource, "objects", h.objects[one])
		case one.children:
			h.Logger.Error(nil, "Children of a function of kopf.Ensure that is not declared anymore are left alone. If it was renamed, declare it with its former id; otherwise, delete the children.",
				"parents", one.resource, "handler", one.name, "children", h.objects[one])
		default:
			h.Logger.Error(nil, "Objects have the progress of a handler that is not declared: it was renamed or removed while it was handling them, or another operator uses the same storage. "+
				"If it was renamed, declare it with its former id, so that it continues. "+h.renamed[one], "resource", one.resource, "record", one.name, "objects", h.objects[one])
		}
		h.reported[one] = true
	}
	clear(h.objects)
	clear(h.renamed)
}

// Remark says what can be done about a record of a handler that is not declared. It asks whether a declared one of the
// same field had another id before. An annotation has dots instead of slashes.
func Remark(name string, declared []string) string {
	for _, id := range declared {
		_, field, hasField := strings.Cut(id, "/")
		former, isSame := strings.CutSuffix(strings.ReplaceAll(name, "/", "."), "."+strings.ReplaceAll(field, "/", "."))
		if hasField && isSame && former != "" {
			return fmt.Sprintf("Was %s called %s before? Declare it with kopf.ID(%q).", id, former, former)
		}
	}
	return "If it was removed, its annotation can be removed, too."
}

func compare(a, b handler) int {
	return strings.Compare(a.resource+" "+a.name, b.resource+" "+b.name)
}

// Stop ends the reports.
func (h *Handlers) Stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
	}
}
