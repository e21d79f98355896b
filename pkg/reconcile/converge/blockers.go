package converge

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Others can set fields next to the wanted ones with which the API server refuses what is wanted. A
// refusal can name such a field. It can also name the field that is wanted, or the one above it:
// minAvailable next to maxUnavailable is a mistake of the spec. Then dry runs find out which of the
// fields of others the API server does not accept. The live object is valid, so it has one member of
// each union, and one of these fields at a time is enough.

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

func (b blocker) isSame(other blocker) bool { return b.at.String() == other.at.String() }

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
	ours, all := setsOf(c.live.GetManagedFields(), c.manager)
	for _, cause := range causesOf(refusal) {
		b := blockerAt(cause, c.live.Object, c.content, ours, all)
		if b == nil {
			rest = append(rest, cause)
			continue
		}
		b.others = c.managersOf(b.at)
		b.ours = b.ours || b.replaces && c.isDrift
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

// managersOf returns the other managers that have set a part of the child.
func (c refused) managersOf(p path) (others []string) {
	for _, entry := range c.live.GetManagedFields() {
		if entry.Manager != c.manager && parseFields(entry.FieldsV1.GetRawBytes()).has(p) {
			others = append(others, entry.Manager)
		}
	}
	return others
}

// blockerAt follows the path of a refusal through the live object and what is wanted. The first part that
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
				rival := rivalOf(items, list, way[n+1:])
				if rival != nil {
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
		i := e.mostLike(rest)
		if i >= 0 {
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

// maxSearch limits the dry runs after a refusal.
const maxSearch = 8

// search adds to the blockers that are known those that dry runs find for the rest of the causes. It returns the
// refusal if the API server does not accept the child without them either.
func (r *run) search(ctx context.Context, c refused, known []blocker, rest []metav1.StatusCause, refusal error) ([]blocker, error) {
	for _, cause := range rest {
		if strings.HasSuffix(cause.Message, validation.FieldImmutableErrorMsg) {
			return nil, refusal // whatever others have set
		}
	}
	found := known
	near := slices.DeleteFunc(nearest(c.foreign(), rest), func(b blocker) bool { return slices.ContainsFunc(known, b.isSame) })
	var tries [][]blocker
	if len(known) > 0 {
		tries = append(tries, nil) // what the refusal names can be all
	}
	for i := range near {
		tries = append(tries, near[i:i+1])
	}
	for _, candidate := range tries[:min(len(tries), maxSearch)] {
		without := append(slices.Clip(found), candidate...)
		err := r.api.TryPatch(ctx, c.resource, c.Key, c.patchWithout(without))
		switch {
		case err == nil:
			foreign := slices.DeleteFunc(slices.Clone(without), func(b blocker) bool { return b.ours })
			if len(foreign) > 0 {
				return nil, withBlockers(refusal, foreign)
			}
			return without, nil
		case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
			return nil, errChanged
		case apierrors.IsBadRequest(err): // a webhook does not support dry runs
			return nil, withBlockers(refusal, candidate)
		case !isRefusedByValidation(err):
			return nil, err
		case isAnswered(rest, causesOf(err)):
			found = without
			rest = causesOf(err)
		}
	}
	return nil, withBlockers(refusal, found[len(known):])
}

// withBlockers returns a refusal with the blockers that are known.
func withBlockers(refusal error, found []blocker) error {
	if len(found) == 0 {
		return refusal
	}
	return &foreignError{refusal, found}
}

// isAnswered reports whether one of the causes is gone. The texts of causes have values, which differ.
func isAnswered(before, now []metav1.StatusCause) bool {
	left := map[metav1.StatusCause]int{}
	for _, cause := range now {
		left[metav1.StatusCause{Type: cause.Type, Field: cause.Field}]++
	}
	for _, cause := range before {
		key := metav1.StatusCause{Type: cause.Type, Field: cause.Field}
		left[key]--
		if left[key] < 0 {
			return true
		}
	}
	return false
}

// nearest returns the parts that share the beginning of their path with a cause: the nearest ones of all causes,
// then the second ones.
func nearest(parts []blocker, causes []metav1.StatusCause) (near []blocker) {
	var ranks [][]blocker
	for _, cause := range causes {
		way := stepsOf(cause.Field)
		rank := slices.DeleteFunc(slices.Clone(parts), func(b blocker) bool { return b.at.common(way) == 0 })
		slices.SortStableFunc(rank, func(a, b blocker) int { return cmp.Compare(b.at.common(way), a.at.common(way)) })
		ranks = append(ranks, rank)
	}
	for i := range parts {
		for _, rank := range ranks {
			if i < len(rank) && !slices.ContainsFunc(near, rank[i].isSame) {
				near = append(near, rank[i])
			}
		}
	}
	return near
}

// common returns how many steps the path has in common with that in a refusal.
func (p path) common(way []step) int {
	for i, e := range p {
		if i == len(way) || e.field != way[i].field || e.index != way[i].index {
			return i
		}
	}
	return len(p)
}

// foreign returns the parts that others have set, and that are not wanted.
func (c refused) foreign() (all []blocker) {
	c.merge(func(at path, value any) bool {
		others := c.managersOf(at)
		if len(others) > 0 {
			isItem := at[len(at)-1].item != nil
			all = append(all, blocker{at: at, value: value, ours: len(at) > 1 && (!isItem || c.owns(at)), others: others})
		}
		return true
	})
	return all
}

// owns reports whether the operator owns a part of the child.
func (c refused) owns(p path) bool {
	ours, _ := setsOf(c.live.GetManagedFields(), c.manager)
	return ours.has(p)
}

// patchWithout returns the JSON patch that makes of the live object what an apply would, without some parts.
func (c refused) patchWithout(parts []blocker) []byte {
	result := c.merge(func(at path, value any) bool {
		isApplied := c.owns(at) && len(c.managersOf(at)) == 0
		return !isApplied && !slices.ContainsFunc(parts, blocker{at: at}.isSame)
	})
	patch := []any{map[string]any{"op": "replace", "path": "/metadata/resourceVersion", "value": c.live.GetResourceVersion()}}
	for _, field := range slices.Sorted(maps.Keys(result)) {
		patch = append(patch, map[string]any{"op": "add", "path": pointerTo(field), "value": result[field]})
	}
	for _, field := range slices.Sorted(maps.Keys(specOf(c.live.Object))) {
		if _, has := result[field]; !has {
			patch = append(patch, map[string]any{"op": "remove", "path": pointerTo(field)})
		}
	}
	text, _ := json.Marshal(patch) //nolint:errchkjson // of JSON
	return text
}

// pointerTo returns the JSON pointer to a field of an object.
func pointerTo(field string) string {
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(field)
}

// merge returns what an apply makes of the live object, except for its metadata. Keep is called for each part that
// is not wanted, and returns whether it stays.
func (c refused) merge(keep func(at path, value any) bool) map[string]any {
	_, all := setsOf(c.live.GetManagedFields(), c.manager)
	result, _ := merged(specOf(c.live.Object), specOf(c.content), nil, all, keep).(map[string]any)
	return result
}

// specOf returns the fields of an object that a handler decides about, without its metadata.
func specOf(content map[string]any) map[string]any {
	return without(content, []string{"apiVersion", "kind", "metadata", "status"})
}

// merged returns a live value with what is wanted. All are the sets of all managers, which know what is one value,
// and the keys of lists.
func merged(live, wanted any, at path, all []fieldSet, keep func(at path, value any) bool) any {
	if len(at) > 0 && slices.ContainsFunc(all, fieldSet.isWhole) {
		return wanted
	}
	switch wanted := wanted.(type) {
	case map[string]any:
		now, _ := live.(map[string]any)
		result := maps.Clone(wanted)
		for _, e := range elements(now) {
			to := append(slices.Clip(at), e)
			value := now[e.field]
			if below, isWanted := wanted[e.field]; isWanted {
				result[e.field] = merged(value, below, to, allBelow(all, e), keep)
			} else if keep(to, value) {
				result[e.field] = value
			}
		}
		return result
	case []any:
		if len(keyNames(all)) == 0 {
			return wanted // it is one value
		}
		var result []any
		rest := slices.Clone(wanted)
		for _, e := range withKeys(elements(live), all) {
			to := append(slices.Clip(at), e)
			i := e.mostLike(rest)
			if i >= 0 {
				result = append(result, merged(e.item, rest[i], to, allBelow(all, e), keep))
				rest = slices.Delete(rest, i, i+1)
			} else if keep(to, e.item) {
				result = append(result, e.item)
			}
		}
		return append(result, rest...)
	}
	return wanted
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
