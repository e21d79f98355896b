package inspect

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record/util"
)

// TestEventsOfOneSecondHaveAnOrder is about times as the API server stores them. It lists by names.
func TestEventsOfOneSecondHaveAnOrder(t *testing.T) {
	start := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	var listed []corev1.Event
	for _, posted := range []int{0, 100, 998, 999, 1000} {
		at := start.Add(time.Duration(posted) * time.Millisecond)
		event := corev1.Event{Reason: at.Format("05.000"), LastTimestamp: metav1.NewTime(at.Truncate(time.Second))}
		event.Name = util.GenerateEventName("one", at.UnixNano())
		listed = append(listed, event)
	}
	slices.SortFunc(listed, latestFirst)
	var got []string
	for _, event := range listed {
		got = append(got, event.Reason)
	}
	if want := []string{"06.000", "05.999", "05.998", "05.100", "05.000"}; !slices.Equal(got, want) {
		t.Errorf("the events are in the order %v, not %v", got, want)
	}
}
