package faults

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// Handlers append the number of their call to two lists of the object, by transformations: to
// one in the status, and to one in the spec that is not a part of the essence. So every
// transformation that is lost or repeated is visible.
const journal = "journal"

// ignored is the list in the spec.
var ignored = object.Path{"spec", journal}

// journals returns the parts of the object with a list. A worker has only that of the spec.
func (s *storm) journals() []string {
	if s.served {
		return []string{"spec"}
	}
	return []string{"spec", "status"}
}

// entry returns the entry of a call in the journals.
func entry(id string, n int) string { return fmt.Sprintf("%s#%d", id, n) }

// author returns the handler that has made an entry.
func author(entry string) string {
	id, _, _ := strings.Cut(entry, "#")
	return id
}

func (c local) enter(entry string) {
	c.Patch().Apply(func(obj *unstructured.Unstructured) error {
		for _, part := range []string{"status", "spec"} {
			entries, _, err := unstructured.NestedStringSlice(obj.Object, part, journal)
			if err != nil {
				return err
			}
			if err := unstructured.SetNestedStringSlice(obj.Object, append(entries, entry), part, journal); err != nil {
				return err
			}
		}
		return nil
	})
}

// journal returns the entries in a part of the object.
func (s state) journal(part string) []string {
	if s.body == nil {
		return nil
	}
	entries, _, _ := unstructured.NestedStringSlice(s.body.Raw(), part, journal)
	return entries
}

// judgeJournals checks the journals after a write. The subject is locked.
func (s *subject) judgeJournals(w *write, before, after state) {
	for _, part := range []string{"spec", "status"} {
		entries := after.journal(part)
		for i, entry := range entries {
			// A rival can overwrite what shows that a write without an answer has arrived.
			if slices.Contains(entries[:i], entry) && s.storm.strict() {
				s.breach("#%d has repeated the transformation %s", w.number, entry)
			}
			if s.rejects[entry] && part == "spec" { // the status is written before the rejection
				s.breach("#%d has a part of the rejected edit of %s", w.number, entry)
			}
		}
		for _, entry := range before.journal(part) {
			if !slices.Contains(entries, entry) {
				s.breach("#%d has lost the transformation %s", w.number, entry)
			}
		}
	}
	s.judgeEntries(w, before, after)
}

// judgeEntries checks that an edit is written together with the record of its attempt, or with
// the end of the cycle.
func (s *subject) judgeEntries(w *write, before, after state) {
	if s.storm.statusRecords || hasEnded(before, after) || after.body.Deleting() {
		return // the records are elsewhere, or gone
	}
	for _, entry := range after.journal("spec") {
		id := author(entry)
		if !slices.Contains(before.journal("spec"), entry) && sameRecord(before, after, id) {
			s.breach("#%d has stored the edit %s without the record of its attempt", w.number, entry)
		}
	}
}

// hasEnded reports whether the cycle has ended with a write, or another operator has ended it
// before. The base stays the same if the change was taken back in the meantime.
func hasEnded(before, after state) bool {
	return !equal(before.base(), after.base()) || len(after.leftovers()) == 0
}

func sameRecord(before, after state, id string) bool {
	was, is := before.record(id), after.record(id)
	return was == nil && is == nil || was != nil && is != nil && was.Equal(is)
}
