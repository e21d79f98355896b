package background

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// The end of a run is stored with one write, together with the result. The next operator makes it not again, and has
// nothing to write.
func TestRunOfAScheduleIsMadeOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var mu sync.Mutex
	var runs []time.Time
	b.Timer(examples, func(_ context.Context, tick *kopf.Tick) error {
		mu.Lock()
		defer mu.Unlock()
		runs = append(runs, tick.Scheduled())
		tick.SetResult("made")
		return nil
	}, kopf.ID("backup"), kopf.Schedule("@yearly", kopf.CatchUp(2)))
	operator := b.start()
	obj := testenv.NewObject("KopfExample", b.namespace, "one", nil)
	obj.SetAnnotations(map[string]string{"kopf.zalando.org/backup.schedule": `{"started":"2020-01-01T00:00:00+00:00","success":true}`})
	b.submit(obj)
	thisYear := time.Date(time.Now().UTC().Year(), 1, 1, 0, 0, 0, 0, time.UTC)
	record := testenv.HaveAnnotation("kopf.zalando.org/backup.schedule", gomega.ContainSubstring(thisYear.Format("2006-01-02")+`T00:00:00.000000+00:00","stopped":"`))
	withSchedule := testenv.HaveAnnotation("kopf.zalando.org/backup.schedule", gomega.ContainSubstring(`"schedule":"CRON_TZ=UTC @yearly"`))
	b.Eventually(cluster.Current(obj)).Should(gomega.And(record, withSchedule, testenv.HavePath("status.backup", "made")))
	b.expectRest()
	b.Expect(b.current(obj).GetFinalizers()).To(gomega.BeEmpty())
	b.expectWrites(3) // the result goes to the status once: it does not change

	operator.Stop()
	b.start()
	b.expectRest()
	b.expectWrites(3)
	mu.Lock()
	defer mu.Unlock()
	b.Expect(runs).To(gomega.Equal([]time.Time{thisYear.AddDate(-1, 0, 0), thisYear}))
	b.remove(obj)
	b.expectGoneAtOnce(obj)
}
