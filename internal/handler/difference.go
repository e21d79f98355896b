package handler

import "github.com/kopf-go/kopf/internal/recomputed"

// difference is computed when it is first used, and kept as long as there is memory for it.
type difference struct {
	compute func() Transition
	kept    recomputed.Value[Transition]
}

func (d *difference) get() *Transition { return d.kept.Get(d.compute) }
