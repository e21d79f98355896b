package kopftest_test

import (
	"context"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// What a crashed operator does has no effect. Outside of the kit, nothing is counted.
func TestEffects(t *testing.T) {
	declare := func(r *kopf.Registry) {
		r.OnCreate(examples, func(ctx context.Context, _ *kopf.Change) error {
			kopftest.Effect(ctx, "begun")
			time.Sleep(time.Minute)
			kopftest.Effect(ctx, "ended")
			return nil
		}, kopf.ID("create"))
	}
	inVirtualTime(t, declare, func(t *testing.T, h *kopftest.Harness) {
		h.Create(example("one"))
		h.Advance(30 * time.Second)
		h.Crash()
		h.Advance(2 * time.Minute)
		if h.Effects("begun") != 2 || h.Effects("ended") != 1 {
			t.Errorf("begun %d times, ended %d times", h.Effects("begun"), h.Effects("ended"))
		}
	})
	kopftest.Effect(t.Context(), "outside")
}
