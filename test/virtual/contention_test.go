package virtual

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// For an hour, another controller sets a field again within a second. That costs few requests, and
// is reported once, with both managers.
func TestContentionForAFieldForAnHour(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.Ensure(examples, theme, kopf.ID("children"))
	}, func(t *testing.T, h *kopftest.Harness) {
		h.Create(newExample())
		h.Advance(time.Minute)
		if writes := contend(h, time.Minute); writes > 13 {
			t.Errorf("in the first minute, the operator writes %d times", writes)
		}
		contend(h, 9*time.Minute)
		if writes := contend(h, 48*time.Minute); writes < 10 || writes > 14 {
			t.Errorf("later, the operator writes %d times in 48 minutes", writes)
		}
		var reports []string
		for _, message := range messages(h, "Logging") {
			if strings.Contains(message, "keeps changing") {
				reports = append(reports, message)
			}
		}
		if len(reports) != 1 || !strings.Contains(reports[0], "data.color (by "+filepath.Base(os.Args[0])+")") || !strings.Contains(reports[0], "manager=example.com") {
			t.Errorf("got the reports %q", reports)
		}
	})
}

// contend sets a field again whenever the operator has restored it. It returns the number of writes
// of the operator.
func contend(h *kopftest.Harness, duration time.Duration) int {
	before := len(h.Writes())
	for range int(duration.Seconds()) {
		child := newTheme()
		if h.Get(child); child.Data["color"] == "blue" {
			h.Patch(child, `{"data": {"color": "red"}}`)
		}
		h.Advance(time.Second)
	}
	return len(h.Writes()) - before
}

// An object whose field another client sets again and again is counted, until that client stops.
func TestContendedObjectsAreCounted(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.OnUpdate(examples, func(_ context.Context, c *kopf.Change) error {
			c.Patch().Set("blue", "spec", "color")
			return nil
		}, kopf.ID("paint"))
	}, func(t *testing.T, h *kopftest.Harness) {
		one := newExample()
		h.Create(one)
		h.Settle() // else the first change can be a part of the creation
		expect := func(want float64) {
			t.Helper()
			if got := measured(t, "kopf_objects_contended", ""); got != want {
				t.Errorf("got %g, want %g", got, want)
			}
		}
		for range 9 {
			h.Patch(one, `{"spec":{"color":"red"}}`)
			h.Advance(time.Second)
		}
		expect(0)
		for range 5 {
			h.Patch(one, `{"spec":{"color":"red"}}`)
			h.Advance(time.Second)
		}
		expect(1)
		h.Advance(time.Hour)
		expect(0)
	})
}
