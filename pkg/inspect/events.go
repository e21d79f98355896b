package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kopf-go/kopf/pkg/events"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/reconcile"
	"github.com/kopf-go/kopf/pkg/settings"
)

// maxEvents is the number of events of each type in an answer.
const maxEvents = 3

// listEvents reads the events about the object, the latest first.
func (c *Cluster) listEvents(ctx context.Context, s *subject) (found []corev1.Event, err error) {
	namespace := s.object.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault // where events about objects of the cluster are
	}
	options := metav1.ListOptions{FieldSelector: fields.Set{"involvedObject.uid": string(s.object.GetUID())}.String()}
	err = each(ctx, c.objects.Resource(corev1.SchemeGroupVersion.WithResource("events")).Namespace(namespace), options, func(u *unstructured.Unstructured) {
		event := corev1.Event{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &event) == nil && event.InvolvedObject.UID == s.object.GetUID() {
			found = append(found, event)
		}
	})
	slices.SortFunc(found, latestFirst)
	return found, err
}

// latestFirst orders events by their times. Times have a resolution of one second; within a second, the names
// decide, which end with the nanosecond of the first post, unless the operator gives other names to its events.
func latestFirst(a, b corev1.Event) int {
	return cmp.Or(lastSeen(b).Compare(lastSeen(a)), cmp.Compare(b.Name, a.Name))
}

// addEvents adds the latest events about the object: refused writes, missing permissions, and handlers that
// have ended are nowhere else.
func (c *Cluster) addEvents(s *subject, found []corev1.Event, err error, e *Explanation) {
	if err != nil {
		e.Notes = append(e.Notes, fmt.Sprintf("The events about the object are unknown: %v.", err))
		return
	}
	shown := map[string]int{} // by types
	for _, event := range found {
		shown[event.Type]++
		if shown[event.Type] <= maxEvents {
			e.Events = append(e.Events, fmt.Sprintf("%s %s at %s: %s", event.Type, event.Reason, s.at(lastSeen(event)), event.Message))
		}
	}
	e.Failing = c.failing(s, found)
}

// own returns the events of the operator, or all if it is unknown which ones these are.
func (c *Cluster) own(all []corev1.Event) []corev1.Event {
	component := cmp.Or(c.Settings.Posting.Component, c.Settings.Name)
	if len(validation.IsQualifiedName(component)) > 0 { // it is the name of its program, which is unknown here
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(event corev1.Event) bool { return event.Source.Component != component })
}

// failedIn returns the handler that has failed for good last, according to the events, or an empty text.
func failedIn(latest []corev1.Event) string {
	for _, event := range latest {
		if id := events.HandlerIn(event.Message); event.Reason == events.ReasonHandlerFailed && id != "" {
			return id
		}
	}
	return ""
}

// failing says that work of the operator on the object has failed, and nothing shows a success since. The
// operator posts one event about errors in a row, so that the time of the event says nothing about their end.
func (c *Cluster) failing(s *subject, latest []corev1.Event) string {
	latest = c.own(latest)
	i := slices.IndexFunc(latest, func(event corev1.Event) bool { return event.Reason == reconcile.ReasonReconcileError })
	if i < 0 || s.Reason == cause.Free { // it does not handle an object that it does not hold
		return ""
	}
	at := lastSeen(latest[i])
	if s.wasWritten(cmp.Or(c.Settings.Name, settings.DefaultName), at) || slices.ContainsFunc(latest, func(event corev1.Event) bool {
		return event.Reason == reconcile.ReasonCycleFinished && !lastSeen(event).Before(at)
	}) {
		return ""
	}
	return fmt.Sprintf("Work on it failed at %s, no success is known since, and a running operator retries it: %s", s.at(at), reconcile.ErrorIn(latest[i].Message))
}

// wasWritten reports whether a manager has written to the object after an error, which is reported when it
// repeats, a second after the last success at least. Times have a resolution of one second. A pass that
// fails can have written the status in the second of the report: that is no success.
func (s *subject) wasWritten(by string, after time.Time) bool {
	after = after.Truncate(time.Second)
	return slices.ContainsFunc(s.object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == by && entry.Time != nil && (entry.Time.After(after) || entry.Subresource == "" && entry.Time.Time.Equal(after))
	})
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
