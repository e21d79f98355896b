package serve

import (
	"context"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// AdmissionFunction returns the function of the only handler of a program.
func AdmissionFunction(p *Program, kind string) func(context.Context, *kopf.Admission) error {
	for _, h := range p.handlers {
		if kind == "mutate" {
			return h.mutate
		}
		return h.validate
	}
	return nil
}

// ChangeFunction returns the function of the only handler of a program.
func ChangeFunction(p *Program) func(context.Context, *kopf.Change) error {
	for _, h := range p.handlers {
		return h.change
	}
	return nil
}

// IsSource reports whether a change of a file counts for --watch.
var IsSource = isSource
