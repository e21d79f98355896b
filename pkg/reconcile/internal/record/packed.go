package record

import (
	"encoding/json"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// Packed holds the essences of a cycle in little memory, while the code of handlers runs. It
// is immutable, and safe for concurrent use.
type Packed struct {
	keeper Keeper
	body   *object.Body
	extra  []object.Path
	base   *object.Snapshot
	// unpacked is the base if it cannot be packed: parts of it are hashes.
	unpacked object.Essence
}

// Pack packs the essences of a cycle, whose current one is that of the body with the extra
// fields.
func (k Keeper) Pack(c *Cycle, body *object.Body, extra []object.Path) *Packed {
	p := &Packed{keeper: k, body: body, extra: extra}
	p.base = pack(c.Base)
	if p.base == nil {
		p.unpacked = c.Base
	}
	return p
}

// pack returns nil if there is no essence, or if it is not JSON.
func pack(essence object.Essence) *object.Snapshot {
	if !object.NewValue(essence).Known() {
		return nil
	}
	text, err := json.Marshal(essence)
	if err != nil {
		return nil
	}
	snapshot, err := object.ParseSnapshot(text)
	if err != nil {
		return nil
	}
	return snapshot.Packed()
}

// Release removes the essences from the cycle.
func (c *Cycle) Release() {
	c.Base = nil
	c.Old = nil
	c.New = nil
}

// Restore adds the essences to the cycle again.
func (p *Packed) Restore(c *Cycle) {
	c.Base = p.unpacked
	if p.base != nil {
		c.Base = p.base.Body().Raw()
	}
	c.Old, c.New = p.keeper.clear(c.Base), p.keeper.Essence(p.body, p.extra)
}
