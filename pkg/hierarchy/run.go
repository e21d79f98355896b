package hierarchy

import (
	"context"
	"fmt"
)

// run applies the steps to the object or to all objects of the list: first it
// finds out what is to be written, then it writes.
func run[O AdoptOption](ctx context.Context, verb string, objs any, opts []O, steps ...step) error {
	c, err := collect(opts)
	if err != nil {
		return fmt.Errorf("cannot %s any object: %w", verb, err)
	}
	for _, step := range steps {
		if err := step(ctx, c); err != nil {
			return fmt.Errorf("cannot %s any object: %w", verb, err)
		}
	}
	var changes []change
	err = each(objs, func(obj any) error {
		planned, err := c.plan(obj)
		changes = append(changes, planned...)
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot %s %w", verb, err)
	}
	for _, planned := range changes {
		planned.child.write(planned.before, planned.after)
	}
	return nil
}

// change is what is to be written to one child.
type change struct {
	child         child
	before, after metadata
}

// plan tells what is to be written to the object and to those nested in it.
func (c *config) plan(obj any) ([]change, error) {
	root, err := childOf(obj)
	if err != nil {
		return nil, fmt.Errorf("an object: %w", err)
	}
	outer, err := planOne(root, c.edits)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", root, err)
	}
	inner, err := c.planNested(root)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", root, err)
	}
	return append(inner, outer), nil
}

func (c *config) planNested(root child) ([]change, error) {
	var changes []change
	for _, path := range c.nested {
		inner, err := root.nested(path)
		if err != nil {
			return nil, err
		}
		if inner == nil {
			continue
		}
		planned, err := planOne(inner, c.nestedEdits)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", path, err)
		}
		changes = append(changes, planned)
	}
	return changes, nil
}

func planOne(child child, edits []edit) (change, error) {
	before, err := child.read()
	if err != nil {
		return change{}, err
	}
	after := before
	for _, edit := range edits {
		if err := edit(&after); err != nil {
			return change{}, err
		}
	}
	return change{child, before, after}, nil
}
