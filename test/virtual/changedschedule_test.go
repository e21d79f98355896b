package virtual

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// withBackups tests an operator with a timer whose schedule is that of the object. The bubble begins at midnight, in UTC.
func withBackups(t *testing.T, test func(*testing.T, *kopftest.Harness, func() string)) {
	t.Helper()
	var runs []string
	withOperator(t, func(r *kopf.Registry) {
		r.Timer(examples, func(_ context.Context, tick *kopf.Tick) error {
			runs = append(runs, tick.Scheduled().Format("02 15:04 MST"))
			return nil
		}, kopf.ID("backup"), kopf.ScheduleFunc(func(a kopf.Arguments) (string, error) {
			schedule, _ := a.Spec().String("schedule")
			return schedule, nil
		}))
	}, func(t *testing.T, h *kopftest.Harness) {
		test(t, h, func() string {
			made := strings.Join(runs, ", ")
			runs = nil
			return made
		})
	})
}

// A changed schedule has no runs from before the change, also if a restart follows it, or if it changes while no
// operator is running. Missed runs of the same schedule are made up for.
func TestChangedScheduleHasNoEarlierRuns(t *testing.T) {
	withBackups(t, func(t *testing.T, h *kopftest.Harness, made func() string) {
		object := newExample()
		h.Create(object)
		expect := func(want string) {
			t.Helper()
			h.Settle()
			if got := made(); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		set := func(schedule string) { h.Patch(object, fmt.Sprintf(`{"spec": {"schedule": %q}}`, schedule)) }

		set("0 3 * * *")
		h.Advance(10*time.Hour + 20*time.Minute)
		expect("01 03:00 UTC")
		set("*/15 * * * *")
		expect("")
		h.Restart()
		expect("")
		h.Advance(10*time.Minute + time.Second)
		expect("01 10:30 UTC")
		set("0 0 12 * *")
		set("CRON_TZ=America/New_York */15 * * * *")
		h.Stop()
		time.Sleep(40 * time.Minute)
		h.Start()
		expect("")
		h.Stop()
		set("*/30 * * * *")
		time.Sleep(time.Hour)
		h.Start()
		expect("")
		h.Advance(20 * time.Minute)
		expect("01 12:30 UTC")
		h.Stop()
		time.Sleep(time.Hour)
		h.Start()
		expect("01 13:30 UTC")
	})
}

// A schedule that cannot be read, or that never runs, is reported once, and costs nothing until the object changes.
func TestUnreadableScheduleWaitsForTheObject(t *testing.T) {
	withBackups(t, func(t *testing.T, h *kopftest.Harness, made func() string) {
		object := newExample()
		object.Object["spec"].(map[string]any)["schedule"] = "@yearly"
		h.Create(object)
		h.Settle()
		h.Patch(object, `{"spec": {"schedule": "0 0 30 2 *"}}`)
		h.Advance(110 * 24 * time.Hour)
		h.Patch(object, `{"spec": {"schedule": "0 0 30 2 *", "size": "1"}}`)
		h.Advance(24 * time.Hour)
		told := messages(h, "ScheduleFailed")
		const want = `Handler backup has no next run: the schedule "0 0 30 2 *" never runs: it names a day that no month has`
		if len(told) != 1 || told[0] != want {
			t.Errorf("got %q", told)
		}
		for _, event := range h.Events() {
			if event.Count != 1 {
				t.Errorf("the event %q was counted to %d", event.Message, event.Count)
			}
		}
		h.Patch(object, `{"spec": {"schedule": "0 12 * * *"}}`)
		h.Advance(13 * time.Hour)
		if got := made(); !strings.HasSuffix(got, "12:00 UTC") || strings.Contains(got, ",") {
			t.Errorf("got %q", got)
		}
	})
}
