package events_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/events"
)

func TestEventHasAllFields(t *testing.T) {
	inBubble(t, events.Options{Component: "my-operator", Instance: "pod-1"}, func(t *testing.T, b *bench) {
		b.Post(ref, "SomeType", "SomeReason", "Some message")
		synctest.Wait()
		got := b.server.all()["Some message"]
		now := metav1.NewTime(time.Now())
		want := corev1.Event{
			ObjectMeta:          metav1.ObjectMeta{Name: got.Name, Namespace: "ns", ResourceVersion: "1"},
			InvolvedObject:      ref,
			Type:                "SomeType",
			Reason:              "SomeReason",
			Message:             "Some message",
			Count:               1,
			FirstTimestamp:      now,
			LastTimestamp:       now,
			Source:              corev1.EventSource{Component: "my-operator"},
			ReportingController: "my-operator",
			ReportingInstance:   "pod-1",
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got  %v\nwant %v", got, want)
		}
		if !strings.HasPrefix(got.Name, "example.") {
			t.Errorf("the name is %q", got.Name)
		}
	})
}

func TestDefaultsAreFilled(t *testing.T) {
	inBubble(t, events.Options{}, func(t *testing.T, b *bench) {
		b.Post(corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "n"}, "", "", "")
		synctest.Wait()
		got := b.server.all()[""]
		host, _ := os.Hostname()
		for what, values := range map[string][2]string{
			"component": {got.ReportingController, "kopf"},
			"instance":  {got.ReportingInstance, host},
			"namespace": {got.Namespace, "default"},
			"type":      {got.Type, "Normal"},
			"reason":    {got.Reason, "Unspecified"},
		} {
			if values[0] != values[1] {
				t.Errorf("%s: got %q, want %q", what, values[0], values[1])
			}
		}
		if b.NeedLeaderElection() {
			t.Error("standby replicas cannot post")
		}
	})
}

func TestEventsAboutEventsAreSkipped(t *testing.T) {
	inBubble(t, events.Options{}, func(t *testing.T, b *bench) {
		for _, apiVersion := range []string{"v1", "events.k8s.io/v1", "events.k8s.io/v1beta1"} {
			b.Post(corev1.ObjectReference{APIVersion: apiVersion, Kind: "Event", Name: "e"}, "Normal", "R", apiVersion)
		}
		b.Post(corev1.ObjectReference{APIVersion: "calendar.example.com/v1", Kind: "Event", Name: "e"}, "Normal", "R", "a party")
		synctest.Wait()
		if events := b.server.all(); len(events) != 1 || events["a party"].Name == "" {
			t.Errorf("got %v", events)
		}
	})
}

func TestRepeatedEventsAreCounted(t *testing.T) {
	inBubble(t, events.Options{}, func(t *testing.T, b *bench) {
		for range 3 {
			b.Post(ref, "Normal", "R", "again")
			synctest.Wait()
			time.Sleep(time.Minute)
		}
		if got := b.server.all()["again"]; got.Count != 3 || got.LastTimestamp.Sub(got.FirstTimestamp.Time) != 2*time.Minute {
			t.Errorf("got %d from %s to %s", got.Count, got.FirstTimestamp, got.LastTimestamp)
		}
		b.server.events = map[string]*corev1.Event{} // the events expire
		b.Post(ref, "Normal", "R", "again")
		synctest.Wait()
		if got := b.server.all()["again"]; got.Count != 4 {
			t.Errorf("an expired event is not created again: %v", got)
		}
		if stats := b.Stats(); stats != (events.Stats{Posted: 4}) {
			t.Errorf("got %+v", stats)
		}
	})
}

func TestSimilarEventsAreCombined(t *testing.T) {
	inBubble(t, events.Options{}, func(t *testing.T, b *bench) {
		for i := range 20 {
			b.Post(ref, "Warning", "Retry", fmt.Sprintf("attempt %d %s", i, strings.Repeat("x", 2000)))
		}
		synctest.Wait()
		events, all := b.server.all(), 0
		for message, event := range events {
			if strings.HasPrefix(message, "(combined from similar events): attempt 19") {
				all = int(event.Count)
			}
			if len(message) > 1024 || event.ReportingController != "kopf" {
				t.Errorf("%d bytes from %q", len(message), event.ReportingController)
			}
		}
		if len(events) != 10 || all != 11 {
			t.Errorf("%d events, of which one stands for %d", len(events), all)
		}
	})
}

// The outcomes of the steps of an object are told apart, however many there are. What one step says again and again is
// combined.
func TestOutcomesOfHandlersAreNotCombined(t *testing.T) {
	inBubble(t, events.Options{}, func(t *testing.T, b *bench) {
		for i := range 12 {
			b.Post(ref, "Normal", "HandlerSucceeded", events.AboutHandler(fmt.Sprint("step", i), " succeeded."))
			b.Post(ref, "Warning", "HandlerRetrying", events.AboutHandler("last", fmt.Sprintf(" failed and will be retried: port %d", i)))
		}
		synctest.Wait()
		all := b.server.all()
		for i := range 12 {
			if all[fmt.Sprintf("Handler step%d succeeded.", i)].Count != 1 {
				t.Errorf("the event of step%d is combined", i)
			}
		}
		const last = "(combined from similar events): Handler last failed and will be retried: port 11"
		if len(all) != 12+10 || all[last].Count != 3 || events.HandlerIn(last) != "last" {
			t.Errorf("got %d events, of which one stands for %d", len(all), all[last].Count)
		}
	})
}

// All names have the prefix, also those of combined events.
func TestNamesOfEventsHaveThePrefix(t *testing.T) {
	inBubble(t, events.Options{NamePrefix: "my-operator-"}, func(t *testing.T, b *bench) {
		for i := range 20 {
			b.Post(ref, "Normal", "Started", fmt.Sprint("event ", i))
			b.Post(ref, "Normal", "Started", "again")
		}
		synctest.Wait()
		names := map[string]bool{}
		for message, event := range b.server.all() {
			if names[event.Name] || !strings.HasPrefix(event.Name, "my-operator-") || len(event.Name) != len("my-operator-")+16 {
				t.Errorf("%q has the name %q", message, event.Name)
			}
			names[event.Name] = true
		}
		if len(names) < 10 {
			t.Errorf("got %d events", len(names))
		}
	})
}

func TestEventsOfOneObjectAreLimited(t *testing.T) {
	inBubble(t, events.Options{Burst: 2, Refill: time.Hour}, func(t *testing.T, b *bench) {
		flood := func() {
			for i := range 5 {
				b.Post(ref, "Normal", fmt.Sprintf("Reason%d", i), "x")
			}
			synctest.Wait()
		}
		flood()
		if stats := b.Stats(); stats != (events.Stats{Posted: 2, Suppressed: 3}) {
			t.Errorf("at once: %+v", stats)
		}
		other := ref
		other.UID, other.Name = "uid-2", "other"
		b.Post(other, "Normal", "R", "x")
		synctest.Wait()
		if stats := b.Stats(); stats.Posted != 3 {
			t.Errorf("another object: %+v", stats)
		}
		time.Sleep(time.Hour + time.Second)
		flood()
		if stats := b.Stats(); stats.Posted != 4 {
			t.Errorf("an hour later: %+v", stats)
		}
	})
}

func TestLogLinesDoNotDisplaceOtherEvents(t *testing.T) {
	inBubble(t, events.Options{Burst: 2, Refill: time.Hour}, func(t *testing.T, b *bench) {
		for i := range 5 {
			b.Post(ref, "Normal", events.ReasonLogging, fmt.Sprintf("line %d", i))
		}
		synctest.Wait()
		if stats := b.Stats(); stats != (events.Stats{Posted: 2, Suppressed: 3}) {
			t.Errorf("of the log: %+v", stats)
		}
		b.Post(ref, "Normal", "Success", "Handler fn succeeded.")
		b.Post(ref, "Error", events.ReasonLogging, "An error does not count as information.")
		synctest.Wait()
		if stats := b.Stats(); stats != (events.Stats{Posted: 4, Suppressed: 3}) {
			t.Errorf("other events: %+v", stats)
		}
	})
}

func TestEventsAtTheSameTimeHaveDifferentNames(t *testing.T) {
	inBubble(t, events.Options{}, func(t *testing.T, b *bench) {
		b.Post(ref, "Normal", "One", "1")
		b.Post(ref, "Normal", "Two", "2")
		synctest.Wait()
		if events := b.server.all(); len(events) != 2 {
			t.Errorf("got %v", events)
		}
	})
}
