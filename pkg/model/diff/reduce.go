package diff

import "github.com/kopf-go/kopf/pkg/model/object"

// Reduce returns the differences of one field, with paths relative to it, as handlers of
// a field get them. It resolves items above the field: if the entire spec was added, then
// spec.size was added, provided that the new spec has a size.
//
// If the receiver is a Full difference, the result equals the Full difference of the
// field's values.
//
// Specification: Tutorial, "Diffs"; Handlers, "Field handlers".
func (d Diff) Reduce(path object.Path) Diff {
	var reduced Diff
	for _, item := range d {
		switch {
		case item.Path.HasPrefix(path):
			item.Path = item.Path[len(path):]
			reduced = append(reduced, item)
		case path.HasPrefix(item.Path):
			reduced = append(reduced, item.inside(path[len(item.Path):])...)
		}
	}
	return reduced
}

// inside returns the differences of a field inside the item's values.
func (i Item) inside(path object.Path) Diff {
	before, _ := object.Lookup(i.Old, path)
	after, _ := object.Lookup(i.New, path)
	return Compute(before, after, Full)
}
