package converge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/json" // integers stay integers
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// fieldSet is a set of fields as managedFields have it: the keys of a mapping are "f:<name>",
// those of a list are "k:<keys of the item as JSON>" or "v:<the item as JSON>", "." is the
// container itself. A set without keys stands for everything below.
type fieldSet map[string]any

func parseFields(raw []byte) fieldSet {
	var fields fieldSet
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	return fields
}

// isWhole reports whether the value is owned as a whole, and not by its parts.
func (f fieldSet) isWhole() bool { return len(f) == 0 }

func (f fieldSet) below(key string) (fieldSet, bool) {
	below, found := f[key].(map[string]any)
	return below, found
}

// element is one step of a path: the field of a mapping, or an item of a list.
type element struct {
	field string
	item  any // nil for a field
	index int
	keys  []string // of the list, if they are known
}

// find returns the set of what the element leads to.
func (f fieldSet) find(e element) (fieldSet, bool) {
	below := f.findAll([]element{e})[0]
	return below, below != nil
}

// findAll returns the set of each element, or nil. Keys that an item of a list does not have are
// defaults of the server, so several sets can match it. Each set belongs to one item, the one
// that has most of its keys.
func (f fieldSet) findAll(parts []element) []fieldSet {
	type match struct {
		at, score int
		key       string
	}
	found := make([]fieldSet, len(parts))
	var items []int
	for i, e := range parts {
		if e.item == nil {
			found[i], _ = f.below("f:" + e.field)
		} else {
			items = append(items, i)
		}
	}
	if len(items) == 0 {
		return found
	}
	var matches []match
	for _, key := range slices.Sorted(maps.Keys(f)) {
		kind, text, _ := strings.Cut(key, ":")
		var known any
		if kind != "k" && kind != "v" || json.Unmarshal([]byte(text), &known) != nil {
			continue
		}
		for _, i := range items {
			score := parts[i].matches(kind, known)
			if score > 0 {
				matches = append(matches, match{i, score, key})
			}
		}
	}
	slices.SortStableFunc(matches, func(a, b match) int { return b.score - a.score })
	taken := map[string]bool{}
	for _, m := range matches {
		if found[m.at] == nil && !taken[m.key] {
			found[m.at], taken[m.key] = f.below(m.key)
		}
	}
	return found
}

// matches returns how many values of the key of a set the item has, or 0 if one differs. It
// compares values, because the server prints numbers in its own way.
func (e element) matches(kind string, known any) int {
	if kind == "v" {
		if isEqual(e.item, known) {
			return 1
		}
		return 0
	}
	keys, _ := known.(map[string]any)
	item, _ := e.item.(map[string]any)
	count := 0
	for name, value := range keys {
		wanted, given := item[name]
		if !given {
			continue
		}
		if !isEqual(wanted, value) {
			return 0
		}
		count++
	}
	return count
}

// isEqual reports whether two values of JSON are the same: 1 and 1.0 are. Integers are exact.
func isEqual(a, b any) bool {
	return value.Equals(value.NewValueInterface(a), value.NewValueInterface(b))
}

// path leads to a field of an object.
type path []element

// String returns the path as people write it: "spec.containers[name=web].image". Items have the keys of
// their list, as in managedFields.
func (p path) String() string {
	var text strings.Builder
	for i, e := range p {
		switch {
		case e.item != nil:
			fmt.Fprintf(&text, "[%s]", e.itemName())
		case strings.ContainsAny(e.field, "./"):
			fmt.Fprintf(&text, "[%s]", e.field)
		case i > 0:
			text.WriteString("." + e.field)
		default:
			text.WriteString(e.field)
		}
	}
	return text.String()
}

func (e element) itemName() string {
	item, isMapping := e.item.(map[string]any)
	if !isMapping {
		return fmt.Sprint(e.item)
	}
	var keys []string
	for _, key := range e.keys {
		if value, ok := item[key]; ok { // otherwise, the server has set its default
			keys = append(keys, fmt.Sprintf("%s=%v", key, value))
		}
	}
	if len(keys) > 0 {
		return strings.Join(keys, ",")
	}
	for _, key := range []string{"name", "key", "type", "mountPath", "port", "containerPort", "uid"} {
		if value, ok := item[key]; ok {
			return fmt.Sprintf("%s=%v", key, value)
		}
	}
	return fmt.Sprint(e.index)
}

// withKeys returns the items of a list with the names of the keys that sets have for it. Items that differ
// only in a key that the server sets are told apart by their names.
func withKeys(parts []element, sets []fieldSet) []element {
	keys := keyNames(sets)
	for _, distinct := range [][]string{keys, append(slices.Clip(keys), "name")} {
		seen := map[string]bool{}
		for i := range parts {
			parts[i].keys = distinct
			seen[parts[i].itemName()] = true
		}
		if len(keys) == 0 || len(seen) == len(parts) {
			break
		}
	}
	return parts
}

// keyNames returns the sorted names of the keys of a list, or nil if no set has an item of it.
func keyNames(sets []fieldSet) []string {
	for _, set := range sets {
		for key := range set {
			text, isItem := strings.CutPrefix(key, "k:")
			var keys map[string]any
			if isItem && json.Unmarshal([]byte(text), &keys) == nil {
				return slices.Sorted(maps.Keys(keys))
			}
		}
	}
	return nil
}

// untracked are the fields that no manager owns.
var untracked = map[string]bool{"apiVersion": true, "kind": true, "metadata.name": true, "metadata.namespace": true}

// uncovered returns the wanted fields that the set does not have. All are the sets of all managers, which
// know the keys of lists.
func (f fieldSet) uncovered(content map[string]any, all ...fieldSet) []path {
	return f.uncoveredIn(content, nil, append(all, f))
}

func (f fieldSet) uncoveredIn(wanted any, at path, all []fieldSet) []path {
	if f.isWhole() && len(at) > 0 {
		return nil
	}
	var missing []path
	parts := withKeys(elements(wanted), all)
	for i, below := range f.findAll(parts) {
		e := parts[i]
		to := append(slices.Clip(at), e)
		switch {
		case untracked[to.String()]:
		case below != nil:
			missing = append(missing, below.uncoveredIn(e.value(wanted), to, allBelow(all, e))...)
		default:
			missing = append(missing, lostFields(e.value(wanted), to, allBelow(all, e))...)
		}
	}
	return missing
}

// lostFields returns the fields of a value that the operator does not own. An empty list that has keys has no
// owner, so an empty list is lost only if another manager owns it as one value.
func lostFields(value any, at path, all []fieldSet) []path {
	return slices.DeleteFunc(fieldsOf(value, at), func(p path) bool {
		below := p[len(at):]
		list, isList := below.found(value).([]any)
		return isList && len(list) == 0 && !slices.ContainsFunc(all, func(f fieldSet) bool { return f.hasWhole(below) })
	})
}

// allBelow returns what the element leads to in each set that has it.
func allBelow(sets []fieldSet, e element) (below []fieldSet) {
	for _, set := range sets {
		if found, has := set.find(e); has {
			below = append(below, found)
		}
	}
	return below
}

// fieldsOf returns the fields of a value. Lists, and their items, are fields as a whole.
func fieldsOf(value any, at path) []path {
	mapping, _ := value.(map[string]any)
	if len(mapping) == 0 || at[len(at)-1].item != nil {
		return []path{at}
	}
	var fields []path
	for _, e := range elements(mapping) {
		fields = append(fields, fieldsOf(e.value(mapping), append(slices.Clip(at), e))...)
	}
	return fields
}

// found returns the value of the field in an object, or nil if it has none.
func (p path) found(in any) any {
	for _, e := range p {
		if e.item == nil {
			in = e.value(in)
			continue
		}
		list, _ := in.([]any)
		i := e.mostLike(list)
		if i < 0 {
			return nil
		}
		in = list[i]
	}
	return in
}

// mostLike returns the index of the item that has most of the keys of the element, or -1 if none has
// them. Without known keys, the names of both decide.
func (e element) mostLike(list []any) int {
	if len(e.keys) == 0 {
		return slices.IndexFunc(list, func(item any) bool { return element{item: item, index: -1}.itemName() == e.itemName() })
	}
	best := -1
	most := 0
	for i, item := range list {
		keys := map[string]any{}
		given, _ := item.(map[string]any)
		for _, name := range e.keys {
			if value, has := given[name]; has {
				keys[name] = value
			}
		}
		score := e.matches("k", keys)
		if score > most {
			best = i
			most = score
		}
	}
	return best
}

// elements returns the steps into a value, in order.
func elements(value any) []element {
	var found []element
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			found = append(found, element{field: key})
		}
	case []any:
		for i, item := range value {
			found = append(found, element{item: item, index: i})
		}
	}
	return found
}

// value returns what the element leads to.
func (e element) value(of any) any {
	if e.item != nil {
		return e.item
	}
	mapping, _ := of.(map[string]any)
	return mapping[e.field]
}

// hasWhole reports whether the set has the path, or what is above it, as one value.
func (f fieldSet) hasWhole(p path) bool {
	for _, e := range p {
		if f.isWhole() {
			return true
		}
		below, found := f.find(e)
		if !found {
			return false
		}
		f = below
	}
	return f.isWhole()
}

// owned returns the part of a path that the set has: the path itself, or the field above it that
// is owned as a whole.
func (f fieldSet) owned(p path) (path, bool) {
	for i, e := range p {
		if i > 0 && f.isWhole() {
			return p[:i], true
		}
		below, found := f.find(e)
		if !found {
			return nil, false
		}
		f = below
	}
	return p, true
}

// has reports whether the set has the path, or a part of it.
func (f fieldSet) has(p path) bool {
	_, found := f.owned(p)
	return found
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
		value := e.value(wanted)
		now := e.value(live)
		if isList {
			now = nil
			at := e.mostLike(listOf(live))
			if at >= 0 {
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
