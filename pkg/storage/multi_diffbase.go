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
	var broken error
	for _, each := range m {
		essence, err := each.Fetch(ctx, body)
		if essence != nil {
			return essence, nil
		}
		if err != nil && !IsBroken(err) {
			return nil, err
		}
		broken = cmp.Or(broken, err)
	}
	return nil, broken
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
	var broken error
	for _, each := range m.cycles() {
		essence, err := each.FetchCycle(ctx, body)
		if essence != nil {
			return essence, nil
		}
		if err != nil && !IsBroken(err) {
			return nil, err
		}
		broken = cmp.Or(broken, err)
	}
	return nil, broken
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
