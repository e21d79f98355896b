package converge

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// driftOf returns the wanted fields that the operator does not own anymore.
func driftOf(u *unstructured.Unstructured, a applied, manager string) []convergence.DriftedField {
	entries := u.GetManagedFields()
	ours, all := setsOf(entries, manager)
	drift := []convergence.DriftedField{}
	for _, p := range ours.uncovered(without(a.content, unownedFields(u.Object, entriesOf(u))), all...) {
		by, at := lastOwner(entries, all, p, manager)
		field := convergence.DriftedField{Path: at.String(), Wanted: object.NewValue(a.wanted(at)), Found: object.NewValue(at.found(u.Object))}
		if slices.ContainsFunc(drift, func(other convergence.DriftedField) bool { return other.Path == field.Path }) {
			continue // another part of what the other manager owns as a whole
		}
		if by != nil {
			field.Manager = by.Manager
			if by.Time != nil {
				field.Since = by.Time.Time
			}
		}
		drift = append(drift, field)
	}
	return drift
}

// wanted returns the wanted value of a field, with the accepted fields below it.
func (a applied) wanted(at path) any {
	all := a.complete
	if all == nil {
		all = a.content
	}
	value := at.found(all)
	if value != nil {
		return value
	}
	value = a.content
	for _, e := range at {
		value = e.value(value)
	}
	return value
}

// lastOwner returns the entry of the manager, except one, that has written a field last, and the
// field as that manager owns it: possibly as a part of something larger. All are the fields of the entries.
func lastOwner(entries []metav1.ManagedFieldsEntry, all []fieldSet, p path, except string) (last *metav1.ManagedFieldsEntry, as path) {
	as = p
	for i := range entries {
		entry := &entries[i]
		if entry.Manager == except && entry.Operation == metav1.ManagedFieldsOperationApply || all[i] == nil {
			continue
		}
		owned, found := all[i].owned(p)
		if found && (last == nil || last.Time.Before(entry.Time)) {
			last = entry
			as = owned
		}
	}
	return last, as
}

// resolution says which changes of others stay in a child.
type resolution struct {
	applied applied
	drift   []convergence.DriftedField
	// isComplete is set if all of the drift is accepted.
	isComplete bool
}

// resolve asks the handlers of drift what becomes of the changes of others: of all, or only of some
// fields. What is applied then is valid only for the version that they have seen.
func (r *run) resolve(ctx context.Context, a applied, u *unstructured.Unstructured, only accepted) (resolution, error) {
	drift := driftOf(u, a, r.manager)
	a.version = u.GetResourceVersion()
	asked := slices.DeleteFunc(slices.Clone(drift), func(f convergence.DriftedField) bool {
		return isOwnMark(f) || len(only) > 0 && only[f.Path] != hashOf(f.Wanted.Any())
	})
	if len(asked) == 0 {
		return resolution{applied: a, drift: drift}, nil
	}
	answer, err := r.call.Drift(ctx, a.resource, convergence.Drift{Child: a.Key, Live: object.NewBody(u.Object), Fields: asked})
	if err != nil {
		undecided, _ := accepted(nil).with(convergence.Accept(), asked)
		r.memory.setUndecided(a.Key, undecided)
		return resolution{}, err
	}
	r.memory.setUndecided(a.Key, nil)
	fields, isComplete := a.accepted.with(answer, asked)
	if len(fields) == len(a.accepted) {
		return resolution{applied: a, drift: drift}, nil
	}
	theirs := slices.DeleteFunc(slices.Clone(asked), func(f convergence.DriftedField) bool { return !answer.Accepts(f.Path) })
	r.call.Log.Info("Changes of a child by others are accepted.", "child", a.Key.String(), "fields", convergence.Fields(theirs))
	resolved := r.claim.mark(a.child, a.label, isKept(u.GetAnnotations()), fields)
	resolved.version = a.version
	return resolution{applied: resolved, drift: drift, isComplete: isComplete && len(asked) == len(drift)}, nil
}

// isOwnMark reports whether a field is one of those that the operator adds to children. They are
// restored without a question, because without them there is no child.
func isOwnMark(f convergence.DriftedField) bool {
	label := path{{field: "metadata"}, {field: "labels"}, {field: convergence.OwnerLabel}}
	annotation := path{{field: "metadata"}, {field: "annotations"}, {field: convergence.MarksAnnotation}}
	return f.Path == label.String() || f.Path == annotation.String() || strings.HasPrefix(f.Path, "metadata.ownerReferences")
}

// accepted are the fields of a child that are left to others, with the hash of what was wanted
// then: a field is applied again when something else is wanted. They are stored on the child.
type accepted map[string]string

// leaveOut removes the fields from what is wanted, and returns those of which that is still the
// same as before.
func (a accepted) leaveOut(content map[string]any) accepted {
	kept := accepted{}
	a.without(content, nil, kept)
	return kept
}

// without returns the value without the fields, or false if nothing is left of it.
func (a accepted) without(value any, at path, kept accepted) (rest any, some bool) {
	parts := elements(value)
	if len(parts) == 0 {
		return value, true
	}
	var list []any
	mapping, isMapping := value.(map[string]any)
	left := 0
	for _, e := range parts {
		below, some := a.below(e.value(value), append(at[:len(at):len(at)], e), kept)
		switch {
		case some && isMapping:
			mapping[e.field] = below
		case some:
			list = append(list, below)
		case isMapping:
			delete(mapping, e.field)
		}
		if some {
			left++
		}
	}
	if isMapping {
		return mapping, left > 0
	}
	return list, left > 0
}

func (a accepted) below(value any, at path, kept accepted) (rest any, some bool) {
	for name, hash := range a {
		if at.isNamed(name) && hash == hashOf(value) {
			kept[name] = hash
			return nil, false
		}
	}
	return a.without(value, at, kept)
}

// isNamed reports whether a name, as String has returned it when the keys of lists were known, is that
// of the path.
func (p path) isNamed(name string) bool {
	rest := name
	for i, e := range p {
		var found bool
		if e.item != nil {
			rest, found = e.cutItem(rest)
		} else {
			printed := path{e}.String()
			if i > 0 && !strings.HasPrefix(printed, "[") {
				printed = "." + printed
			}
			rest, found = strings.CutPrefix(rest, printed)
		}
		if !found || rest != "" && rest[0] != '.' && rest[0] != '[' {
			return false
		}
	}
	return rest == ""
}

// cutItem cuts what selects the item off the beginning of a name. Keys that the item does not have are
// defaults of the server.
func (e element) cutItem(name string) (rest string, found bool) {
	rest, found = strings.CutPrefix(name, "["+e.itemName()+"]")
	if found {
		return rest, true
	}
	rest, found = strings.CutPrefix(name, "[")
	item, _ := e.item.(map[string]any)
	if !found || len(item) == 0 {
		return name, false
	}
	for known := 0; ; rest = rest[1:] {
		key, _, isKey := strings.Cut(rest, "=")
		if !isKey {
			return name, false
		}
		rest = rest[len(key)+1:]
		if value, has := item[key]; has {
			text := fmt.Sprint(value)
			if !strings.HasPrefix(rest, text) {
				return name, false
			}
			rest = rest[len(text):]
			known++
		} else {
			rest = rest[max(0, strings.IndexAny(rest, ",]")):]
		}
		switch {
		case rest == "":
			return name, false
		case rest[0] == ']':
			return rest[1:], known > 0
		case rest[0] != ',':
			return name, false
		}
	}
}

// with returns the fields and those of a drift that a resolution accepts.
func (a accepted) with(r convergence.Resolution, drift []convergence.DriftedField) (all accepted, complete bool) {
	all = accepted{}
	complete = true
	maps.Copy(all, a)
	for _, field := range drift {
		if r.Accepts(field.Path) {
			all[field.Path] = hashOf(field.Wanted.Any())
		} else {
			complete = false
		}
	}
	return all, complete
}
