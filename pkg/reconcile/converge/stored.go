package converge

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The API server adds to some fields when it creates an object: tolerations to those of a pod, and expressions to
// its label selectors. To apply such a field again as the handler returns it takes back what was added, which the
// API server refuses if the field is immutable. So, after a refusal, the fields that the operator still owns are
// applied as they are stored, if the handler wants the same as before.

// isWantedBefore reports whether the handler wants the same as when the child was applied. If others have removed
// the annotation, the version that was judged last says so.
func (r *run) isWantedBefore(a applied, live *fact) bool {
	_, known := r.view(r.state, a.Key)
	return live.marks.Wanted == a.hash || live.marks.Wanted == "" && known != nil && known.marks.Wanted == a.hash
}

// asStored returns what is applied, with the stored values of the fields that the operator still owns. Differs is
// set unless that is the same.
func (a applied) asStored(u *unstructured.Unstructured, manager string) (content map[string]any, differs bool) {
	var ours fieldSet
	var all []fieldSet
	for _, entry := range u.GetManagedFields() {
		set := parseFields(entry.FieldsV1.GetRawBytes())
		all = append(all, set)
		if isOurs(entry, manager) {
			ours = set
		}
	}
	if ours == nil {
		return a.content, false
	}
	content, _ = ours.stored(a.content, u.Object, all).(map[string]any)
	content["metadata"] = a.content["metadata"] // it is always mutable, and the annotation can differ
	return content, !isEqual(content, a.content)
}

// stored returns a wanted value with the stored values of the fields that the set has. Empty lists that have no
// owner are left out. All are the sets of all managers, which know the keys of lists.
func (f fieldSet) stored(wanted, live any, all []fieldSet) any {
	parts := withKeys(elements(wanted), all)
	sets := f.findAll(parts)
	list, isList := wanted.([]any)
	items := make([]any, 0, len(list))
	mapping, _ := wanted.(map[string]any)
	mapping = maps.Clone(mapping)
	for i, e := range parts {
		value, now := e.value(wanted), e.value(live)
		if isList {
			now = nil
			if at := e.mostLike(listOf(live)); at >= 0 {
				now = listOf(live)[at]
			}
		}
		empty, _ := value.([]any)
		switch {
		case sets[i] == nil && empty != nil && len(empty) == 0:
			delete(mapping, e.field)
			continue
		case sets[i] == nil || now == nil:
		case sets[i].isWhole():
			value = now
		default:
			value = sets[i].stored(value, now, allBelow(all, e))
		}
		if isList {
			items = append(items, value)
		} else {
			mapping[e.field] = value
		}
	}
	if isList {
		return items
	}
	return mapping
}
