package kopftest

import (
	"context"
	"fmt"

	"github.com/kopf-go/kopf/pkg/hierarchy"
)

// effect is an action of a handler outside of the cluster, or another one that must not happen
// twice.
type effect struct {
	what string
	// object is the handled object: `KopfExample "ns/one"`.
	object string
}

// String identifies equal effects.
func (e effect) String() string {
	if e.object == "" {
		return fmt.Sprintf("%q", e.what)
	}
	return fmt.Sprintf("%q for %s", e.what, e.object)
}

// Effect counts something that a handler does, and that must not be done twice for an
// object: "bucket created", "mail sent". Call it where it is done, after it was done: usually
// in the fake of an external system. The context is that of the handler. Sweep compares the
// counts; Harness.Effects returns them.
//
// It does nothing outside of a Harness, and in an operator that has crashed. Do not call it in
// programs, because they would contain the test kit.
func Effect(ctx context.Context, what string) {
	from, ok := ctx.Value(linkKey{}).(*link)
	if !ok || from.isCut() {
		return
	}
	done := effect{what: what}
	if owner, known := hierarchy.OwnerFrom(ctx); known {
		done.object = owner.String()
	}
	from.recording.add(func(r *recording) {
		r.effects = append(r.effects, done)
		r.tell("effect:", done)
	})
}

// Effects returns how often handlers have done something for any object, as they have told
// the function Effect.
func (h *Harness) Effects(what string) int {
	h.recording.mu.Lock()
	defer h.recording.mu.Unlock()
	count := 0
	for _, one := range h.recording.effects {
		if one.what == what {
			count++
		}
	}
	return count
}

// countEffects returns the counts of all effects.
func (r *recording) countEffects() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := map[string]int{}
	for _, one := range r.effects {
		counts[one.String()]++
	}
	return counts
}
