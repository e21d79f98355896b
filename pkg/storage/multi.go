package storage

import (
	"cmp"
	"context"
	"errors"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// MultiDiffBase keeps the base in several storages at once, to get from one
// storage to another without handling all objects once more: the first base
// found is read, all are written. Put the new storage first and the old one
// second, until all objects have changed once; then use the new one alone.
//
// The fields that any of the storages ignores are ignored.
//
// Specification: Configuration, "Storage transition".
type MultiDiffBase []DiffBase

var (
	_ DiffBase  = MultiDiffBase{}
	_ CycleBase = MultiDiffBase{}
	_ Hasher    = MultiDiffBase{}
	_ Validator = MultiDiffBase{}
)

// cleaner is a storage of this package: it cleans an essence that is there
// already, while it can still see the whole body.
type cleaner interface {
	clean(body *object.Body, extra []object.Path, essence object.Essence) object.Essence
}

// Build makes the essence without the own fields of all storages. A storage of
// another package sees the essence so far as if it were the body.
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

// Fetch returns the first base that is there and can be read.
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

// cycles are the storages that can keep the essence of an open cycle.
func (m MultiDiffBase) cycles() []CycleBase {
	var able []CycleBase
	for _, each := range m {
		if keeper, ok := each.(CycleBase); ok {
			able = append(able, keeper)
		}
	}
	return able
}

// FetchCycle reads the essence of the open cycle from the first storage that has it:
// the cycle may have begun when there was only the old one.
func (m MultiDiffBase) FetchCycle(ctx context.Context, body *object.Body) (object.Essence, error) {
	return firstFound(m.cycles(), func(each CycleBase) (object.Essence, bool, error) {
		essence, err := each.FetchCycle(ctx, body)
		return essence, essence != nil, err
	})
}

// StoreCycle writes the essence of the open cycle to the first storage that can
// keep it: one is enough, for it lives no longer than the cycle. It does nothing if
// none can.
func (m MultiDiffBase) StoreCycle(ctx context.Context, body *object.Body, into Patch, essence object.Essence) error {
	if able := m.cycles(); len(able) > 0 {
		return able[0].StoreCycle(ctx, body, into, essence)
	}
	return nil
}

// PurgeCycle removes the essence of the open cycle from all storages.
func (m MultiDiffBase) PurgeCycle(ctx context.Context, body *object.Body, into Patch) error {
	var errs []error
	for _, each := range m.cycles() {
		errs = append(errs, each.PurgeCycle(ctx, body, into))
	}
	return errors.Join(errs...)
}

// Hashes tells why a storage keeps the essence as hashes, the first one that does.
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

// MultiProgress keeps the records in several storages at once, to get from one
// storage to another while handling goes on: the first record found is read, all
// are written and removed.
//
// Specification: Configuration, "Handling progress".
type MultiProgress []Progress

var (
	_ Progress  = MultiProgress{}
	_ Validator = MultiProgress{}
)

// Fetch returns the first record that is there and can be read.
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

// Clear leaves out the traces of all storages.
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
