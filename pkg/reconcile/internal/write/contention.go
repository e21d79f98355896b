package write

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/internal/contention"
	"github.com/kopf-go/kopf/pkg/internal/managedfields"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
)

const (
	// threshold is the number of consecutive overwrites that count as contention. A
	// person rarely repeats a change so often; two operators do so within a second.
	threshold = 10
	// window is the longest time between two consecutive overwrites.
	window = 10 * time.Second
)

// detector detects that another writer keeps overwriting what an operator
// writes to an object, and decides how long to leave the object alone.
//
// # What contention is
//
// Two operators that want different values in one field are called for each other's
// writes, and each restores its own value, as fast as the API server permits, without
// end. One side can see that a field which it is about to write no longer has the
// value that it wrote last. No further proof is needed that another writer changed it:
// if the operator itself had changed it since, that would be the value it wrote last.
//
// A single overwrite is not contention: restoring it is what operators are for.
// Contention begins after threshold overwrites, each within window of the one before.
// Operators reach that in a second; a person who edits quickly, or a tool that applies
// its files every few minutes, does not. Writes of others to other fields do not count,
// nor do the operator's writes to fields that no other writer changes. Lists are
// written as a whole: an overwritten list counts only if exactly the same list is
// restored, because a writer that adopts the changes of the others does not revert them.
//
// The operator's own records on an object are fields like any others. Two operators
// that keep their records in the same annotations, and disagree about what was
// handled, are detected in the same way.
//
// Writes of a handler with its own client look like another writer's: a handler that
// writes different values to a field in both ways contends with itself.
//
// # What is done
//
// The write is made, because losing nothing matters most. After it, the object is left
// alone, each time for longer. Changes of the object in the meantime are handled then:
// late, but none is lost. Contention ends when a write was left alone for twice as long
// as the last delay. Then everything is as before.
//
// # What is kept
//
// For an object that was just written, two numbers for each written field; for all other
// objects, nothing. Both are dropped some seconds after the last write or, under
// contention, when it ends.
//
// A detector is safe for concurrent use, as long as only one goroutine at a time writes each object.
type detector struct {
	rule contention.Rule

	mu         sync.Mutex
	objects    map[identity]*entry
	cleanupDue bool // a cleanup is scheduled: one timer for all objects
}

// newDetector returns a detector. The delays follow the writes under contention; the last one
// repeats. Without delays, nothing is detected.
func newDetector(delays []time.Duration) *detector {
	return &detector{rule: contention.Rule{Patience: threshold - 1, Window: window, Delays: delays}, objects: map[identity]*entry{}}
}

// entry contains the recent writes of one object.
type entry struct {
	hashes     fieldHashes // of the fields as they were written last
	writtenAt  time.Time   // the time of the last write
	overwrites contention.Count
}

// finding describes what a write is about to restore.
type finding struct {
	// fields lists the fields that another writer has changed since the operator wrote them.
	fields []object.Path
	// begins is set if contention begins with this write.
	begins bool
	// by is the other writer. Nil means that it is unknown or irrelevant.
	by *metav1.ManagedFieldsEntry

	removed []uint64 // the ids of the fields that the write removes together with a mapping
}

// check compares a merge patch with earlier writes. The patch must be minimal for the body.
func (d *detector) check(key identity, body, merge map[string]any) finding {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.objects[key]
	if e == nil {
		return finding{}
	}
	fields, removed := e.hashes.compare(body, merge)
	begins := len(fields) > 0 && e.overwrites.Next(d.rule, time.Now()).Begins(d.rule)
	return finding{fields: fields, begins: begins, removed: removed}
}

// recordWrite records a write after it was made, and returns how long the object must
// be left alone. The function reports whether the server has accepted the value of a
// field.
func (d *detector) recordWrite(key identity, merge map[string]any, accepted func(object.Path, any) bool, found finding) time.Duration {
	if len(d.rule.Delays) == 0 {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.objects[key]
	if e == nil {
		e = &entry{}
		d.objects[key] = e
		d.scheduleCleanup()
	}
	now := time.Now()
	e.writtenAt = now
	for _, id := range found.removed {
		delete(e.hashes, id)
	}
	e.hashes = e.hashes.updated(merge, accepted)
	if len(found.fields) == 0 {
		return 0
	}
	e.overwrites = e.overwrites.Next(d.rule, now)
	return e.overwrites.Delay(d.rule)
}

// delay returns how much longer an object must be left alone.
func (d *detector) delay(key identity) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.objects[key]
	if e == nil {
		return 0
	}
	return e.overwrites.Left(d.rule, time.Now())
}

// counts returns the numbers of objects under contention, by their resources.
func (d *detector) counts() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	counts := map[string]int{}
	now := time.Now()
	for key, e := range d.objects {
		if e.overwrites.IsOpen(d.rule, now) {
			counts[key.Resource]++
		}
	}
	return counts
}

// scheduleCleanup schedules the removal of expired entries.
func (d *detector) scheduleCleanup() {
	if d.cleanupDue {
		return
	}
	d.cleanupDue = true
	time.AfterFunc(window, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.cleanupDue = false
		now := time.Now()
		for key, e := range d.objects {
			if e.overwrites.IsOver(d.rule, now) && now.Sub(e.writtenAt) >= window {
				delete(d.objects, key)
			}
		}
		if len(d.objects) > 0 {
			d.scheduleCleanup()
		}
	})
}

// examineContention checks before a write whether it restores changes by others. Under
// contention, it also determines the other writer, because the write removes the traces.
func (s *Session) examineContention(ctx context.Context, merge map[string]any) finding {
	c := s.writer.contention.check(identity{s.target.Key, s.body.UID()}, s.body.Raw(), merge)
	if !c.begins {
		return c
	}
	managers, err := s.target.API.ManagedFields(ctx, s.target.Key.NamespacedName)
	if err != nil {
		s.report.Log.V(1).Info("The other writer of the object is unknown.", "problem", err.Error())
	}
	c.by = managedfields.LastWriter(managers, nil, c.fields...)
	return c
}

// recordContention records what was written, and reports a contention in the log and as an event
// when it begins.
func (s *Session) recordContention(c finding, merge map[string]any) {
	taken := func(object.Path, any) bool { return true }
	if isPrunable(merge) {
		raw := s.body.Raw() // as the server has stored it
		taken = func(path object.Path, wanted any) bool {
			value, _ := object.Lookup(raw, path)
			return object.Equal(value, wanted)
		}
	}
	delay := s.writer.contention.recordWrite(identity{s.target.Key, s.body.UID()}, merge, taken, c)
	if !c.begins {
		return
	}
	var names []string
	for _, field := range c.fields {
		names = append(names, field.String())
	}
	fields := strings.Join(names, ", ")
	remedy := "Let only one of them write these fields."
	if slices.ContainsFunc(c.fields, s.writer.isOwnRecord) {
		remedy = "These are this operator's own records: give one of the operators another prefix and finalizer, or connect them by a peering."
	}
	if c.by != nil && c.by.Manager == s.writer.Name {
		remedy += " The other client has the same field manager: give each operator its name in settings.Name, to tell them apart."
	}
	s.report.Log.Info("Another client keeps undoing the writes of this operator to the object. The object is handled less and less often until that stops. "+remedy,
		"fields", fields, "manager", s.writer.Name, "by", c.author(), "delay", delay.String())
	s.report.Event(s.body, report.Warning, "FieldContention", fmt.Sprintf("The writes of this operator (%q) are undone repeatedly by %s: %s. The object is handled less and less often until that stops. %s",
		s.writer.Name, c.author(), fields, remedy))
}

// author names the writer that undoes our writes, as far as the API server knows.
func (c finding) author() string {
	by := c.by
	switch {
	case by == nil:
		return "a client that the object does not name"
	case by.Time == nil:
		return fmt.Sprintf("the field manager %q (%s)", by.Manager, by.Operation)
	default:
		return fmt.Sprintf("the field manager %q (%s at %s)", by.Manager, by.Operation, by.Time.UTC().Format(time.RFC3339))
	}
}

// isOwnRecord reports whether the operator stores its state in the field.
func (w *Writer) isOwnRecord(field object.Path) bool {
	switch {
	case len(field) < 2 || field[0] != "metadata":
		return false
	case len(field) == 3 && field[1] == "annotations":
		return w.Records.IsRecord(field[2])
	default:
		return field[1] == "finalizers"
	}
}

// maxFields is the number of fields of one object whose values are kept. A writer of
// more fields within seconds has other problems.
const maxFields = 200

// fieldHashes maps the ids of fields to the hashes of their values.
type fieldHashes map[uint64]uint64

// seed makes the hashes of this process, which are never stored.
var seed = maphash.MakeSeed()

// field is a field that a merge patch writes. Its value is nil if the field is removed, and a
// mapping if only fields below it are written.
type field struct {
	path  object.Path // its memory belongs to the next field afterwards
	id    uint64      // the hash of the path
	value any
}

// walk visits a field, and then those below it.
func (f field) walk(visit func(f field)) {
	visit(f)
	mapping, _ := f.value.(map[string]any)
	for key, value := range mapping {
		below := field{append(f.path, key), maphash.Comparable(seed, step{f.id, key}), value}
		below.walk(visit)
	}
}

// step is the last step of a path.
type step struct {
	above uint64
	key   string
}

func (f field) isMapping() bool {
	_, mapping := f.value.(map[string]any)
	return mapping
}

// compare compares a merge patch with what was written last. Overwritten are the fields that no
// longer have that value. Removed are the fields below those that the patch removes or replaces:
// the operator gives them up, and can write them again.
func (h fieldHashes) compare(body, merge map[string]any) (overwritten []object.Path, removed []uint64) {
	field{value: merge}.walk(func(f field) {
		if f.isMapping() {
			return
		}
		stored, _ := object.Lookup(body, f.path)
		last, known := h[f.id]
		_, isList := f.value.([]any)
		if known && last != hashValue(stored) && (!isList || last == hashValue(f.value)) {
			overwritten = append(overwritten, slices.Clone(f.path))
		}
		field{path: f.path, id: f.id, value: stored}.walk(func(f field) { removed = append(removed, f.id) })
	})
	slices.SortFunc(overwritten, slices.Compare)
	return overwritten, removed
}

// updated returns the hashes after a write. A mapping that the operator has removed is there again
// when the operator writes below it.
func (h fieldHashes) updated(merge map[string]any, accepted func(object.Path, any) bool) fieldHashes {
	if h == nil || len(h) > maxFields {
		h = fieldHashes{}
	}
	field{value: merge}.walk(func(f field) {
		delete(h, f.id)
		if !f.isMapping() && accepted(f.path, f.value) {
			h[f.id] = hashValue(f.value)
		}
	})
	return h
}

// hashValue returns the hash of a value, or of nil if there is none.
func hashValue(value any) uint64 {
	text, _ := json.Marshal(value) // never fails: the value comes from JSON
	return maphash.Bytes(seed, text)
}
