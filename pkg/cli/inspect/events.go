package inspect

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
)

// maxEvents is the number of events of each type in an answer.
const maxEvents = 3

// addEvents adds the latest events about the object: refused writes, missing permissions, and handlers that
// have ended are nowhere else.
func addEvents(ctx context.Context, c *Cluster, s *situation, e *Explanation) {
	namespace := s.object.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault // where events about objects of the cluster are
	}
	var found []corev1.Event
	options := metav1.ListOptions{FieldSelector: fields.Set{"involvedObject.uid": string(s.object.GetUID())}.String()}
	err := each(ctx, c.objects.Resource(corev1.SchemeGroupVersion.WithResource("events")).Namespace(namespace), options, func(u *unstructured.Unstructured) {
		event := corev1.Event{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &event) == nil && event.InvolvedObject.UID == s.object.GetUID() {
			found = append(found, event)
		}
	})
	if err != nil {
		e.Notes = append(e.Notes, fmt.Sprintf("The events about the object are unknown: %v.", err))
		return
	}
	slices.SortStableFunc(found, func(a, b corev1.Event) int { return lastSeen(b).Compare(lastSeen(a)) })
	shown := map[string]int{} // by types
	for _, event := range found {
		if shown[event.Type]++; shown[event.Type] <= maxEvents {
			e.Events = append(e.Events, fmt.Sprintf("%s %s at %s: %s", event.Type, event.Reason, s.at(lastSeen(event)), event.Message))
		}
	}
}

// lastSeen returns when an event was posted the last time.
func lastSeen(event corev1.Event) time.Time {
	switch {
	case event.Series != nil:
		return event.Series.LastObservedTime.Time
	case !event.LastTimestamp.IsZero():
		return event.LastTimestamp.Time
	default:
		return event.EventTime.Time
	}
}
