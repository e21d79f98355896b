package storage

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage/internal/annotation"
)

// RecordLister is a Progress that finds records on an object that are not of the operator's
// handlers. The engine reports them: they show that a handler was renamed or removed while
// it was handling objects.
type RecordLister interface {
	Progress
	// UnknownRecords returns the sorted names of the records on the object, except those
	// of the handlers and of their sub-handlers. The name of a record is the handler's id as
	// far as the storage can tell.
	UnknownRecords(ctx context.Context, body *object.Body, handlerIDs []string) ([]string, error)
}

var (
	_ RecordLister = AnnotationsProgress{}
	_ RecordLister = StatusProgress{}
	_ RecordLister = SmartProgress{}
	_ RecordLister = MultiProgress{}
)

// UnknownRecords returns the names of the annotations, without the prefix. Ids with a slash
// and long ids are stored with other characters, or as a hash.
func (s AnnotationsProgress) UnknownRecords(_ context.Context, body *object.Body, handlerIDs []string) ([]string, error) {
	prefix := s.prefix() + "/"
	found := s.records(body)
	unknown := unknownOf(found, handlerIDs, ".", func(id string) []string {
		names := annotation.Keys(s.prefix(), id, body, false)
		for i, key := range names {
			names[i] = strings.TrimPrefix(key, prefix)
		}
		return names
	})
	return unknown, nil
}

// records returns the records in the annotations by their names, without the prefix.
func (s AnnotationsProgress) records(body *object.Body) map[string]*Record {
	prefix := s.prefix() + "/"
	// Kubernetes copies the records of a Deployment to its ReplicaSets, whose own ones have
	// this suffix.
	suffix := strings.TrimPrefix(annotation.Key(s.prefix(), "", body), prefix)
	found := map[string]*Record{}
	for key, text := range body.Annotations() {
		name, ours := strings.CutPrefix(key, prefix)
		if !ours || !strings.HasSuffix(name, suffix) || !strings.Contains(text, `"started"`) {
			continue // the base can be long, and is not worth decoding
		}
		if record, err := parseRecord(text); err == nil && record.isProgress() {
			found[name] = record
		}
	}
	return found
}

// isProgress reports whether the record has what all records have, also those of early
// operators of Kopf. Other values of the operator's annotations do not have it.
func (r *Record) isProgress() bool {
	return r != nil && !r.Started.IsZero() && (r.Purpose != "" || !r.absent.retries)
}

// UnknownRecords returns the ids in the field.
func (s StatusProgress) UnknownRecords(_ context.Context, body *object.Body, handlerIDs []string) ([]string, error) {
	value, _ := body.Lookup(s.field())
	stored, _ := value.(map[string]any)
	found := map[string]*Record{}
	for id, fields := range stored {
		if record, err := recordOf(fields); err == nil && record.isProgress() {
			found[id] = record
		}
	}
	return unknownOf(found, handlerIDs, "/", func(id string) []string { return []string{id} }), nil
}

// unknownOf returns the names that belong neither to the handlers, nor to sub-handlers of
// them or of other found handlers.
func unknownOf(found map[string]*Record, handlerIDs []string, separator string, namesOf func(id string) []string) []string {
	if len(found) == 0 {
		return nil
	}
	known := slices.Clone(handlerIDs)
	for _, record := range found {
		known = append(known, record.Subrefs...)
	}
	var parents []string
	for _, id := range known {
		for _, name := range namesOf(id) {
			delete(found, name)
			parents = append(parents, name)
		}
	}
	var unknown []string
	for _, name := range slices.Sorted(maps.Keys(found)) { // a parent precedes its sub-handlers
		if !slices.ContainsFunc(parents, func(parent string) bool { return strings.HasPrefix(name, parent+separator) }) {
			unknown = append(unknown, name)
			parents = append(parents, name)
		}
	}
	return unknown
}

// UnknownRecords returns those of both.
func (s SmartProgress) UnknownRecords(ctx context.Context, body *object.Body, handlerIDs []string) ([]string, error) {
	return s.storages().UnknownRecords(ctx, body, handlerIDs)
}

// UnknownRecords returns those of all storages that find them.
func (m MultiProgress) UnknownRecords(ctx context.Context, body *object.Body, handlerIDs []string) ([]string, error) {
	var all []string
	for _, each := range m {
		if lister, ok := each.(RecordLister); ok {
			unknown, err := lister.UnknownRecords(ctx, body, handlerIDs)
			if err != nil {
				return nil, err
			}
			all = append(all, unknown...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// TraceRemover is a DiffBase or a Progress that can remove everything that it has stored on an object, whichever
// handlers it belongs to. The command release uses it before an uninstall. What other storages have stored on objects
// stays there.
type TraceRemover interface {
	// RemoveTraces adds the removals to the patch. It makes no requests and changes nothing else,
	// because it is also called to show what would be removed.
	RemoveTraces(body *object.Body, into Patch)
}

var (
	_ TraceRemover = AnnotationsDiffBase{}
	_ TraceRemover = StatusDiffBase{}
	_ TraceRemover = MultiDiffBase{}
	_ TraceRemover = AnnotationsProgress{}
	_ TraceRemover = StatusProgress{}
	_ TraceRemover = SmartProgress{}
	_ TraceRemover = MultiProgress{}
)

// RemoveTraces removes the base, the open cycle, and the marker of the prefix.
func (s AnnotationsDiffBase) RemoveTraces(body *object.Body, into Patch) {
	for _, key := range annotation.Keys(s.prefix(), cmp.Or(s.Key, DefaultKey), body, false) {
		into.remove(annotation.Path(key), body)
	}
	into.remove(annotation.Path(s.cycleKey(body)), body)
	removeMarker(s.prefix(), body, into)
}

func removeMarker(prefix string, body *object.Body, into Patch) {
	into.remove(annotation.Path(prefix+"/"+annotation.Marker), body)
}

// RemoveTraces removes the base and the open cycle.
func (s StatusDiffBase) RemoveTraces(body *object.Body, into Patch) {
	into.remove(s.field(), body)
	into.remove(s.cycleField(), body)
}

// RemoveTraces removes what is in the storages that implement TraceRemover.
func (m MultiDiffBase) RemoveTraces(body *object.Body, into Patch) { removeAllTraces(m, body, into) }

// RemoveTraces removes all records, the annotation touch-dummy, and the marker of the prefix.
func (s AnnotationsProgress) RemoveTraces(body *object.Body, into Patch) {
	for name := range s.records(body) {
		into.remove(annotation.Path(s.prefix()+"/"+name), body)
	}
	s.PurgeTouch(body, into)
	removeMarker(s.prefix(), body, into)
}

// RemoveTraces removes the field with all records.
func (s StatusProgress) RemoveTraces(body *object.Body, into Patch) { into.remove(s.field(), body) }

// RemoveTraces removes the records from the annotations and the status.
func (s SmartProgress) RemoveTraces(body *object.Body, into Patch) {
	s.storages().RemoveTraces(body, into)
}

// RemoveTraces removes what is in the storages that implement TraceRemover.
func (m MultiProgress) RemoveTraces(body *object.Body, into Patch) { removeAllTraces(m, body, into) }

func removeAllTraces[S any](storages []S, body *object.Body, into Patch) {
	for _, each := range storages {
		if remover, ok := any(each).(TraceRemover); ok {
			remover.RemoveTraces(body, into)
		}
	}
}

// Irremovable returns the types of the storages, also of those within others, that implement neither TraceRemover nor
// Eraser.
func Irremovable(storages ...any) []string {
	var names []string
	for _, each := range single(storages) {
		_, removes := each.(TraceRemover)
		_, erases := each.(Eraser)
		if !removes && !erases {
			names = append(names, fmt.Sprintf("%T", each))
		}
	}
	return names
}
