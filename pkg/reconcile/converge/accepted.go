package converge

import (
	"fmt"
	"maps"
	"strings"

	"github.com/kopf-go/kopf/pkg/model/convergence"
)

// accepted are the fields of a child that are left to others, with the hash of what was wanted
// then: a field is applied again when something else is wanted. They are stored on the child.
type accepted map[string]string

// leaveOut removes the fields from what is wanted, and returns those of which that is still the
// same as before.
func (a accepted) leaveOut(content map[string]any) accepted {
	if len(a) == 0 {
		return nil
	}
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
