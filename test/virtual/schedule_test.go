package virtual

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// A schedule over a year, with restarts at random, also in the middle of runs: each run is made once.
func TestEveryRunOfAScheduleIsMadeOnce(t *testing.T) {
	const schedule, zone = "30 2 * * *", "Europe/Berlin"
	var made []time.Time
	withOperator(t, func(r *kopf.Registry) {
		r.Timer(examples, func(ctx context.Context, tick *kopf.Tick) error {
			select {
			case <-time.After(3 * time.Hour):
				made = append(made, tick.Scheduled())
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}, kopf.ID("backup"), kopf.Schedule(schedule, kopf.TimeZone(zone), kopf.CatchUp(100)))
	}, func(t *testing.T, h *kopftest.Harness) {
		began := time.Now()
		h.Create(newExample())
		random := rand.New(rand.NewPCG(1, 2))
		for range 100 {
			h.Advance(time.Duration(random.Int64N(int64(6 * 24 * time.Hour))))
			switch random.IntN(3) {
			case 0:
				h.Restart()
			case 1:
				h.Crash()
			default:
				h.Stop()
				time.Sleep(time.Duration(random.Int64N(int64(48 * time.Hour))))
				h.Start()
			}
		}
		h.Advance(max(5*24*time.Hour, time.Until(began.AddDate(1, 0, 0))))
		berlin, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		var want []time.Time
		for day := began.In(berlin); day.Before(time.Now().Add(-12 * time.Hour)); day = day.AddDate(0, 0, 1) {
			run := time.Date(day.Year(), day.Month(), day.Day(), 2, 30, 0, 0, berlin)
			if run.Hour() != 2 || run.Minute() != 30 { // the clocks go forward
				run = time.Date(day.Year(), day.Month(), day.Day(), 3, 0, 0, 0, berlin)
			}
			if first := run.Add(-time.Hour).In(berlin); first.Hour() == 2 { // they go back
				run = first
			}
			want = append(want, run)
		}
		if len(want) < 365 || len(made) != len(want) {
			t.Errorf("got %d runs, want %d", len(made), len(want))
		}
		for i := range min(len(made), len(want)) {
			if !made[i].Equal(want[i]) {
				t.Fatalf("got %s, want %s", made[i], want[i])
			}
		}
	})
}

// What a run wants to write can be rejected, as long as a policy denies everything, or because it is wrong. The run has ended
// nevertheless: another process does not make it again.
func TestRunWhoseEditIsRejectedIsMadeOnce(t *testing.T) {
	var made []time.Time
	withOperator(t, func(r *kopf.Registry) {
		r.Timer(examples, func(_ context.Context, tick *kopf.Tick) error {
			made = append(made, tick.Scheduled())
			tick.Patch().Merge(map[string]any{"metadata": map[string]any{"labels": map[string]any{"bad": "not valid!"}}})
			return nil
		}, kopf.ID("backup"), kopf.Schedule("@hourly"))
	}, func(t *testing.T, h *kopftest.Harness) {
		h.Create(newExample())
		for hour := range 12 {
			if hour == 6 {
				h.Fail(kopftest.Requests{Verb: "patch", Resource: "kopfexamples"}, 8, errors.NewInvalid(schema.GroupKind{Group: "kopf.dev", Kind: "KopfExample"}, "one", nil))
			}
			h.Advance(time.Hour - 10*time.Minute*time.Duration(min(hour, 1)))
			h.Advance(10 * time.Minute) // until the policy is gone, and the end is stored
			h.Restart()
		}
		if want := 12; len(made) != want {
			t.Errorf("got %d runs, want %d: %v", len(made), want, made)
		}
		for i := range len(made) - 1 {
			if made[i+1].Sub(made[i]) != time.Hour {
				t.Errorf("got %s after %s", made[i+1], made[i])
			}
		}
	})
}

// Another process that handles the object at the same time has made a later run meanwhile. Its record stays.
func TestAnEarlierRunDoesNotReplaceALaterOne(t *testing.T) {
	later := time.Time{}
	withOperator(t, func(r *kopf.Registry) {
		r.Timer(examples, func(ctx context.Context, tick *kopf.Tick) error {
			later = tick.Scheduled().Add(48 * time.Hour)
			record := fmt.Sprintf(`{"started":%q,"stopped":%q,"retries":1,"success":true,"failure":false}`, later.Format(time.RFC3339Nano), later.Format(time.RFC3339Nano))
			patch := map[string]any{"metadata": map[string]any{"annotations": map[string]any{"kopf.zalando.org/backup.schedule": record}}}
			text, err := json.Marshal(patch)
			if err != nil {
				return err
			}
			tick.Patch().Set("yes", "status", "done")
			return tick.Client().Patch(ctx, newExample(), client.RawPatch(types.MergePatchType, text))
		}, kopf.ID("backup"), kopf.Schedule("30 2 * * *"))
	}, func(t *testing.T, h *kopftest.Harness) {
		one := newExample()
		h.Create(one)
		h.Advance(25 * time.Hour)
		h.Get(one)
		got := one.GetAnnotations()["kopf.zalando.org/backup.schedule"]
		done, _, _ := unstructured.NestedString(one.Object, "status", "done")
		if later.IsZero() || !strings.Contains(got, later.Format("2006-01-02")) || done != "yes" {
			t.Errorf("the record is %s after one of %s; done: %s", got, later, done)
		}
	})
}
