package converge

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The API server can refuse what is wanted because of fields that others have set next to it:
// the other member of a union, such as valueFrom next to value, or what is left of an item that is not
// wanted anymore. Such fields are taken over, so that the next apply removes them, together with the rest
// of its changes.
//
//	refusal → causes → blockers in the live object → take over → apply
//	                 → or dry runs find them (search.go)

// blocker is a part of a child that keeps it from being applied.
type blocker struct {
	at    path
	value any
	// ours is set if it is the operator's to remove: a field next to wanted ones, or an item of which it still
	// has a part.
	ours bool
	// replaces is set for an item that is not wanted, in a list that lacks a wanted one.
	replaces bool
	// others are the managers that have set it.
	others []string
}

// foreignError is a refusal because of what others have added, and what is not the operator's to decide.
type foreignError struct {
	err      error
	blockers []blocker
}

func (e *foreignError) Error() string {
	var texts []string
	for _, b := range e.blockers {
		texts = append(texts, fmt.Sprintf("%s belongs to %s", b.at, strings.Join(b.others, ", ")))
	}
	return fmt.Sprintf("%v; %s: remove it there, or declare the handler with kopf.Recreate", e.err, strings.Join(texts, ", "))
}

func (e *foreignError) Unwrap() error { return e.err }

// refused is a child that the API server refuses to change.
type refused struct {
	applied
	// content is what is applied, with the fields that the operator owns as they are stored.
	content map[string]any
	live    *unstructured.Unstructured
	manager string
	// isDrift is set if the same was applied before, so that what is missing was removed by others.
	isDrift bool
}

// unblock removes what keeps a child from being applied, and applies it. It returns the refusal if that is not
// possible, and nil if the child has changed meanwhile.
func (r *run) unblock(ctx context.Context, a applied, live *fact, why action, refusal error) (*fact, error) {
	u, err := r.api.Get(ctx, a.resource, a.Namespace, a.Name)
	if apierrors.IsNotFound(err) || err == nil && u.GetUID() != live.uid {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c := refused{a, a.content, u, r.Manager, r.isWantedBefore(a, live)}
	if c.isDrift {
		var differs bool
		c.content, differs = a.asStored(u, r.Manager)
		if differs {
			result, err := r.applyAgain(ctx, c, live, why)
			if !isRefusedByValidation(err) {
				return result, err
			}
			refusal = err
		}
	}
	found, err := r.blockersOf(ctx, c, refusal)
	if len(found) == 0 {
		return nil, err
	}
	c.live, err = r.api.Rename(ctx, a.resource, a.Key, takenOver(u, found, r.Manager))
	switch {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	result, err := r.applyAgain(ctx, c, live, why)
	if result != nil {
		r.reportRemoved(a.Key, found)
	}
	return result, err
}

// applyAgain applies a child that was refused. It returns nil if the child has changed meanwhile.
func (r *run) applyAgain(ctx context.Context, c refused, live *fact, why action) (*fact, error) {
	u, err := r.api.Apply(ctx, c.resource, withMetadata(c.content, "resourceVersion", c.live.GetResourceVersion()))
	switch {
	case isReplaced(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	r.reportApplied(c.applied, u, live, why)
	return r.answered(u), nil
}

// blockersOf returns what must be removed so that the child can be applied, or the refusal if that is not known
// or not the operator's to decide. It returns neither if the child has changed meanwhile.
func (r *run) blockersOf(ctx context.Context, c refused, refusal error) ([]blocker, error) {
	found, foreign, rest := c.named(refusal)
	switch {
	case len(foreign) > 0:
		return nil, &foreignError{refusal, foreign}
	case len(rest) > 0:
		return r.search(ctx, c, found, rest, refusal)
	}
	return found, nil
}

// reportRemoved reports the fields of others that were removed.
func (r *run) reportRemoved(key Key, found []blocker) {
	var names, managers []string
	for _, b := range found {
		names = append(names, b.at.String())
		managers = append(managers, b.others...)
	}
	slices.Sort(managers)
	r.Log.Info("Fields of the child that are not wanted were removed, because the API server accepts what is wanted only without them.",
		"child", key.String(), "fields", names, "managers", slices.Compact(managers))
}

// step is one part of the path in a refusal: a field, or an index in a list.
type step struct {
	field string
	index int
}

var steps = regexp.MustCompile(`\[(\d+)\]|\[([^]]*)\]|([^.\[\]]+)`)

// stepsOf parses the path in a refusal: spec.template.spec.containers[0].env[1].valueFrom.
func stepsOf(text string) (all []step) {
	for _, found := range steps.FindAllStringSubmatch(text, -1) {
		if found[1] != "" {
			index, err := strconv.Atoi(found[1])
			if err != nil {
				return nil
			}
			all = append(all, step{index: index})
			continue
		}
		all = append(all, step{field: found[2] + found[3]})
	}
	return all
}

// named returns the blockers that a refusal names: those that are the operator's to remove, and those that are
// not. The rest are the causes that name none.
func (c refused) named(refusal error) (found, foreign []blocker, rest []metav1.StatusCause) {
	var ours fieldSet
	var all []fieldSet
	for _, entry := range c.live.GetManagedFields() {
		set := parseFields(entry.FieldsV1.GetRawBytes())
		all = append(all, set)
		if isOurs(entry, c.manager) {
			ours = set
		}
	}
	for _, cause := range causesOf(refusal) {
		b := blockerAt(cause, c.live.Object, c.content, ours, all)
		if b == nil {
			rest = append(rest, cause)
			continue
		}
		b.others, b.ours = c.managersOf(b.at), b.ours || b.replaces && c.isDrift
		switch {
		case slices.ContainsFunc(found, b.isSame):
		case b.ours:
			found = append(found, *b)
		case len(b.others) > 0:
			foreign = append(foreign, *b)
		default:
			rest = append(rest, cause)
		}
	}
	return found, foreign, rest
}

func (b blocker) isSame(other blocker) bool { return b.at.String() == other.at.String() }

// managersOf returns the other managers that have set a part of the child.
func (c refused) managersOf(p path) (others []string) {
	for _, entry := range c.live.GetManagedFields() {
		if entry.Manager != c.manager && parseFields(entry.FieldsV1.GetRawBytes()).has(p) {
			others = append(others, entry.Manager)
		}
	}
	return others
}

func isOurs(entry metav1.ManagedFieldsEntry, manager string) bool {
	return entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
}

// blockerAt follows the path of a refusal through the live object, beside what is wanted. The first part that
// is there, but not wanted, is the blocker.
func blockerAt(cause metav1.StatusCause, live, wanted any, ours fieldSet, all []fieldSet) *blocker {
	var at path
	way := stepsOf(cause.Field)
	for n, s := range way {
		switch inside := live.(type) {
		case map[string]any:
			below, exists := inside[s.field]
			if !exists {
				return nil
			}
			beside, _ := wanted.(map[string]any)
			e := element{field: s.field}
			at = append(at, e)
			next, isWanted := beside[s.field]
			if !isWanted {
				return &blocker{at: at, value: below, ours: len(at) > 1 && at[0].field != "metadata"}
			}
			live = below
			wanted = next
			ours, _ = ours.find(e)
			all = allBelow(all, e)
		case []any:
			items := withKeys(elements(inside), all)
			list := listOf(wanted)
			if s.field != "" || len(items) == 0 || len(items[0].keys) == 0 {
				return nil // the list is one value
			}
			blocked := func(e element) *blocker {
				_, has := ours.find(e)
				return &blocker{at: append(at, e), value: e.item, ours: has, replaces: lacksOne(items, list)}
			}
			if cause.Type == metav1.CauseTypeFieldValueDuplicate {
				if rival := rivalOf(items, list, way[n+1:]); rival != nil {
					return blocked(*rival)
				}
			}
			if s.index >= len(items) {
				return nil
			}
			e := items[s.index]
			i := e.mostLike(list)
			if i < 0 {
				return blocked(e)
			}
			at = append(at, e)
			live = e.item
			wanted = list[i]
			ours, _ = ours.find(e)
			all = allBelow(all, e)
		default:
			return nil
		}
	}
	return nil
}

func listOf(value any) []any {
	list, _ := value.([]any)
	return list
}

// lacksOne reports whether a list lacks one of the wanted items.
func lacksOne(items []element, wanted []any) bool {
	rest := slices.Clone(wanted)
	for _, e := range items {
		if i := e.mostLike(rest); i >= 0 {
			rest = slices.Delete(rest, i, i+1)
		}
	}
	return len(rest) > 0
}

// rivalOf returns the item of the live list that is not wanted, and has the same value in a field as one that
// is. The index in a refusal is that of the merged list, which can be longer than the live one.
func rivalOf(items []element, wanted []any, field []step) *element {
	if len(field) != 1 {
		return nil
	}
	for i, e := range items {
		theirs, _ := e.item.(map[string]any)
		value, has := theirs[field[0].field]
		isSame := func(other any) bool {
			ours, _ := other.(map[string]any)
			return isEqual(ours[field[0].field], value)
		}
		if has && e.mostLike(wanted) < 0 && slices.ContainsFunc(wanted, isSame) {
			return &items[i]
		}
	}
	return nil
}

// has reports whether the set has the path, or a part of it.
func (f fieldSet) has(p path) bool {
	_, found := f.owned(p)
	return found
}

// takenOver returns the JSON patch that moves parts of an object from all managers to what the operator has
// applied.
func takenOver(u *unstructured.Unstructured, parts []blocker, manager string) []byte {
	entries := u.GetManagedFields()
	for i := range entries {
		entry := &entries[i]
		if entry.FieldsV1 == nil {
			continue
		}
		set := parseFields(entry.FieldsV1.GetRawBytes())
		for _, part := range parts {
			if isOurs(*entry, manager) {
				set.add(part.at, everything(part.value))
			} else {
				set.remove(part.at)
			}
		}
		text, _ := json.Marshal(set) //nolint:errchkjson // of JSON
		entry.FieldsV1 = metav1.NewFieldsV1(string(text))
	}
	patch, _ := json.Marshal([]any{ //nolint:errchkjson // of JSON
		map[string]any{"op": "replace", "path": "/metadata/managedFields", "value": entries},
		map[string]any{"op": "replace", "path": "/metadata/resourceVersion", "value": u.GetResourceVersion()},
	})
	return patch
}

// everything returns the set of a value with all below it. Lists are one value.
func everything(value any) fieldSet {
	set := fieldSet{}
	fields, _ := value.(map[string]any)
	for name, below := range fields {
		set["f:"+name] = map[string]any(everything(below))
	}
	if len(fields) > 0 {
		set["."] = map[string]any{}
	}
	return set
}

// keyOf returns the key of an element in the set, or the one that it would have. The API server prints keys in
// its own way.
func (f fieldSet) keyOf(e element) string {
	if e.item == nil {
		return "f:" + e.field
	}
	item, _ := e.item.(map[string]any)
	keys := map[string]any{}
	for _, name := range e.keys {
		if value, has := item[name]; has {
			keys[name] = value
		}
	}
	for key := range f {
		text, isItem := strings.CutPrefix(key, "k:")
		var known any
		if isItem && json.Unmarshal([]byte(text), &known) == nil && isEqual(known, keys) {
			return key
		}
	}
	text, _ := json.Marshal(keys) //nolint:errchkjson // of JSON
	return "k:" + string(text)
}

// add adds a path, with what is below it.
func (f fieldSet) add(p path, below fieldSet) {
	for i, e := range p {
		key := f.keyOf(e)
		next, exists := f[key].(map[string]any)
		if !exists {
			next = map[string]any{}
			if e.item != nil {
				next["."] = map[string]any{}
			}
			f[key] = next
		}
		if i == len(p)-1 {
			maps.Copy(next, below)
		}
		f = next
	}
}

// remove removes a path, and what is empty then: an empty set would stand for all below it.
func (f fieldSet) remove(p path) {
	key := f.keyOf(p[0])
	next, exists := f[key].(map[string]any)
	if len(p) > 1 && len(next) > 0 {
		fieldSet(next).remove(p[1:])
		exists = len(next) == 0
	} else if len(p) > 1 {
		return // it is owned as a whole, or not at all
	}
	if exists {
		delete(f, key)
	}
}
