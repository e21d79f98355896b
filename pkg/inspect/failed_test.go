package inspect

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/events"
	"github.com/kopf-go/kopf/pkg/settings"
)

// The command to call a handler again names the one that has failed, as far as events say that: not just any.
func TestFailedHandlerIsNamed(t *testing.T) {
	now := time.Now()
	event := func(component, reason, message string, ago time.Duration) corev1.Event {
		return corev1.Event{Reason: reason, Message: message, Source: corev1.EventSource{Component: component}, LastTimestamp: metav1.NewTime(now.Add(-ago))}
	}
	const failed = events.ReasonHandlerFailed
	for name, test := range map[string]struct {
		events []corev1.Event // the latest first
		want   string
	}{
		"no event":      {nil, "HANDLER"},
		"only a retry":  {[]corev1.Event{event("mine", "HandlerRetrying", events.AboutHandler("upgrade", " will be retried: no"), 0)}, "HANDLER"},
		"a failure":     {[]corev1.Event{event("mine", failed, events.AboutHandler("upgrade", " failed permanently: no"), 0)}, "upgrade"},
		"the latest":    {[]corev1.Event{event("mine", failed, events.AboutHandler("database", " failed permanently: no"), 0), event("mine", failed, events.AboutHandler("upgrade", " failed permanently: no"), time.Minute)}, "database"},
		"a combined":    {[]corev1.Event{event("mine", failed, "(combined from similar events): Handler upgrade failed permanently: no", 0)}, "upgrade"},
		"a sub-handler": {[]corev1.Event{event("mine", failed, events.AboutHandler("upgrade/schema", " failed permanently: no"), 0)}, "upgrade"},
		"of others":     {[]corev1.Event{event("theirs", failed, events.AboutHandler("upgrade", " failed permanently: no"), 0)}, "HANDLER"},
		"unknown":       {[]corev1.Event{event("mine", failed, events.AboutHandler("former", " failed permanently: no"), 0)}, "HANDLER"},
		"other words":   {[]corev1.Event{event("mine", failed, "It failed.", 0)}, "HANDLER"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Cluster{}
			c.Settings = settings.Settings{Name: "mine"}
			latest := failedIn(c.own(test.events))
			e := explainedAs(t, latest, withSize(1, handled()), func(r *registry.Registry) {
				r.Add(handler.Update(kex, change, handler.ID("database")))
				r.Add(handler.Update(kex, change, handler.ID("upgrade")))
			})
			if got := strings.Join(e.Notes, "\n"); !strings.Contains(got, " -n default "+test.want+" ") {
				t.Errorf("got %s", got)
			}
		})
	}
}

// The record of the last run of a timer is no sub-handler. A run of another schedule does not count as missed.
func TestLastRunIsToldOfItsTimer(t *testing.T) {
	yesterday := time.Now().UTC().AddDate(0, 0, -1).Truncate(24 * time.Hour)
	tomorrow := yesterday.AddDate(0, 0, 2)
	for schedule, next := range map[string]time.Time{
		"CRON_TZ=UTC 0 0 * * *": yesterday.AddDate(0, 0, 1), // it was missed
		"CRON_TZ=UTC 0 1 * * *": tomorrow,
	} {
		last := m{"started": yesterday.Format("2006-01-02T15:04:05.000000+00:00"), "success": true, "schedule": schedule}
		e := explained(t, withSize(1, recordOf("backup.schedule", last)), func(r *registry.Registry) {
			r.Add(handler.Timer(kex, change, handler.ID("backup"), handler.Scheduled("0 0 * * *")))
		})
		want := "next for " + next.Format("2006-01-02 15:04:05 MST") + "; the run of " + yesterday.Format("2006-01-02 15:04:05 MST") + " has succeeded"
		if len(e.Handlers) != 1 || !strings.Contains(e.Handlers[0].Message, want) {
			t.Errorf("%s: got %+v, want %s", schedule, e.Handlers, want)
		}
	}
}
