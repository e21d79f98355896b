package storage

import (
	"cmp"
	"context"
	"errors"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// MultiDiffBase stores the base in several storages at once. Use it to move to another
// storage without handling all objects again: the first base found is read, and all
// are written. Put the new storage first and the old one second until all objects have
// changed once; then use only the new one.
//
// A field is ignored if any of the storages ignores it.
//
// Specification: Configuration, "Storage transition".
type MultiDiffBase []DiffBase

var (
	_ DiffBase  = MultiDiffBase{}
	_ CycleBase = MultiDiffBase{}
	_ Hasher    = MultiDiffBase{}
	_ Validator = MultiDiffBase{}
)

// cleaner is implemented by the storages of this package: it cleans an existing
// essence while it can still see the entire body.
type cleaner interface {
	clean(body *object.Body, extra []object.Path, essence object.Essence) object.Essence
}

// Build returns the essence without the storages' own fields. A storage of another
// package gets the essence built so far in place of the body.
func (m MultiDiffBase) Build(body *object.Body, extra []object.Path) object.Essence {
	return m.clean(body, extra, BuildEssence(body, extra))
}

func (m MultiDiffBase) clean(body *object.Body, extra []object.Path, essence object.Essence) object.Essence {
	for _, each := range m {
		if ours, ok := each.(cleaner); ok {
			essence = ours.clean(body, extra, essence)
		} else {
			essence = each.Build(object.NewBody(essence), extra)
		}
	}
	return essence
}

// Fetch returns the first readable base.
func (m MultiDiffBase) Fetch(ctx context.Context, body *object.Body) (object.Essence, error) {
	return firstFound(m, func(each DiffBase) (object.Essence, bool, error) {
		essence, err := each.Fetch(ctx, body)
		return essence, essence != nil, err
	})
}

// Store writes the base to all storages.
func (m MultiDiffBase) Store(ctx context.Context, body *object.Body, into Patch, essence object.Essence) error {
	var errs []error
	for _, each := range m {
		errs = append(errs, each.Store(ctx, body, into, essence))
	}
	return errors.Join(errs...)
}

// cycles returns the storages that can store an open cycle.
func (m MultiDiffBase) cycles() []CycleBase {
	var able []CycleBase
	for _, each := range m {
		if keeper, ok := each.(CycleBase); ok {
			able = append(able, keeper)
		}
	}
	return able
}

// FetchCycle returns the open cycle from the first storage that has it: the cycle may have
// started when only the old storage was used.
func (m MultiDiffBase) FetchCycle(ctx context.Context, body *object.Body) (*Cycle, error) {
	return firstFound(m.cycles(), func(each CycleBase) (*Cycle, bool, error) {
		c, err := each.FetchCycle(ctx, body)
		return c, c != nil, err
	})
}

// StoreCycle writes the open cycle to the first storage that supports it: one is enough,
// because it is needed only until the cycle ends. It does nothing if no storage supports it.
func (m MultiDiffBase) StoreCycle(ctx context.Context, body *object.Body, into Patch, c *Cycle) error {
	if able := m.cycles(); len(able) > 0 {
		return able[0].StoreCycle(ctx, body, into, c)
	}
	return nil
}

// PurgeCycle removes the open cycle from all storages.
func (m MultiDiffBase) PurgeCycle(ctx context.Context, body *object.Body, into Patch) error {
	var errs []error
	for _, each := range m.cycles() {
		errs = append(errs, each.PurgeCycle(ctx, body, into))
	}
	return errors.Join(errs...)
}

// Hashes returns the reason of the first storage that hashes the essence.
func (m MultiDiffBase) Hashes(body *object.Body, into Patch, essence object.Essence) HashReason {
	for _, each := range m {
		if hasher, ok := each.(Hasher); ok {
			if reason := hasher.Hashes(body, into, essence); reason != NotHashed {
				return reason
			}
		}
	}
	return NotHashed
}

// Validate checks all storages.
func (m MultiDiffBase) Validate() error { return validateAll(m) }

// MultiProgress stores the records in several storages at once. Use it to move to
// another storage while handling continues: the first record found is read, and all
// are written and removed.
//
// Specification: Configuration, "Handling progress".
type MultiProgress []Progress

var (
	_ Progress    = MultiProgress{}
	_ TouchPurger = MultiProgress{}
	_ Validator   = MultiProgress{}
)

// Fetch returns the first readable record.
func (m MultiProgress) Fetch(ctx context.Context, body *object.Body, handlerID string) (*Record, error) {
	return firstFound(m, func(each Progress) (*Record, bool, error) {
		record, err := each.Fetch(ctx, body, handlerID)
		return record, record != nil, err
	})
}

// Store writes the record to all storages.
func (m MultiProgress) Store(ctx context.Context, body *object.Body, into Patch, handlerID string, record *Record) error {
	var errs []error
	for _, each := range m {
		errs = append(errs, each.Store(ctx, body, into, handlerID, record))
	}
	return errors.Join(errs...)
}

// Purge removes the record from all storages.
func (m MultiProgress) Purge(ctx context.Context, body *object.Body, into Patch, handlerID string) error {
	var errs []error
	for _, each := range m {
		errs = append(errs, each.Purge(ctx, body, into, handlerID))
	}
	return errors.Join(errs...)
}

// PurgeTouch removes the annotation touch-dummy from all storages that support it.
func (m MultiProgress) PurgeTouch(body *object.Body, into Patch) {
	for _, each := range m {
		if purger, ok := each.(TouchPurger); ok {
			purger.PurgeTouch(body, into)
		}
	}
}

// Clear returns the essence without the data of all storages.
func (m MultiProgress) Clear(essence object.Essence) object.Essence {
	for _, each := range m {
		essence = each.Clear(essence)
	}
	return essence
}

// Validate checks all storages.
func (m MultiProgress) Validate() error { return validateAll(m) }

// firstFound returns the value of the first storage that has one and can read it.
// It reports an unreadable value only if no other storage has a readable one.
func firstFound[S, T any](storages []S, fetch func(S) (value T, found bool, err error)) (T, error) {
	var none T
	var broken error
	for _, each := range storages {
		value, found, err := fetch(each)
		switch {
		case found:
			return value, nil
		case err != nil && !IsBroken(err):
			return none, err
		}
		broken = cmp.Or(broken, err)
	}
	return none, broken
}
