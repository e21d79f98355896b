package virtual

import (
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
