package diff

import "github.com/kopf-go/kopf/pkg/model/object"

// Reduce is what the differences mean for one field, with paths relative to it,
// as the handlers of a field get it. An item above the field is resolved: when
// the whole spec was added, then spec.size was, if the new spec has a size.
//
// It equals the Full difference of that field's two values, if this is the Full
// difference of the whole.
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

// inside is what the item means for a field in its two values.
func (i Item) inside(path object.Path) Diff {
	before, _ := object.Lookup(i.Old, path)
	after, _ := object.Lookup(i.New, path)
	return Compute(before, after, Full)
}
