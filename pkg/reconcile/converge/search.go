package converge

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A refusal can name the field that is wanted, or the one above it, instead of the one that others have set next
// to it: minAvailable next to maxUnavailable is a mistake of the spec. Then dry runs find out which of the fields
// of others the API server does not accept. The live object is valid, so it has one member of each union, and
// one of these fields at a time is enough.

// maxSearch limits the dry runs after a refusal.
const maxSearch = 8

// search adds to the blockers that are known those that dry runs find for the rest of the causes. It returns the
// refusal if the API server does not accept the child without them either, and nothing if the child has changed
// meanwhile.
func (r *run) search(ctx context.Context, c refused, known []blocker, rest []metav1.StatusCause, refusal error) ([]blocker, error) {
	if slices.ContainsFunc(rest, isImmutable) {
		return nil, refusal
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
			return ours(without, refusal)
		case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
			return nil, nil
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

// ours returns the blockers if they all are the operator's to remove. Otherwise, it returns an error with those
// that are not.
func ours(found []blocker, refusal error) ([]blocker, error) {
	foreign := slices.DeleteFunc(slices.Clone(found), func(b blocker) bool { return b.ours })
	if len(foreign) > 0 {
		return nil, withBlockers(refusal, foreign)
	}
	return found, nil
}

// withBlockers returns a refusal with the blockers that are known.
func withBlockers(refusal error, found []blocker) error {
	if len(found) == 0 {
		return refusal
	}
	return &foreignError{refusal, found}
}

// isImmutable reports whether a field cannot be changed, whatever others have set.
func isImmutable(cause metav1.StatusCause) bool {
	return strings.HasSuffix(cause.Message, validation.FieldImmutableErrorMsg)
}

// isAnswered reports whether one of the causes is gone. The texts of causes have values, which differ.
func isAnswered(before, now []metav1.StatusCause) bool {
	left := map[metav1.StatusCause]int{}
	for _, cause := range now {
		left[metav1.StatusCause{Type: cause.Type, Field: cause.Field}]++
	}
	for _, cause := range before {
		key := metav1.StatusCause{Type: cause.Type, Field: cause.Field}
		if left[key]--; left[key] < 0 {
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
		if others := c.managersOf(at); len(others) > 0 {
			isItem := at[len(at)-1].item != nil
			all = append(all, blocker{at: at, value: value, ours: len(at) > 1 && (!isItem || c.owns(at)), others: others})
		}
		return true
	})
	return all
}

// owns reports whether the operator owns a part of the child.
func (c refused) owns(p path) bool {
	entry := entryOf(c.live.GetManagedFields(), c.manager)
	return entry != nil && parseFields(entry.FieldsV1.GetRawBytes()).has(p)
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
	var all []fieldSet
	for _, entry := range c.live.GetManagedFields() {
		all = append(all, parseFields(entry.FieldsV1.GetRawBytes()))
	}
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
			if i := e.mostLike(rest); i >= 0 {
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
