package inspect

import (
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
)

// maxWarnings is the number of events in an answer.
const maxWarnings = 3

// addWarnings adds the latest warnings about the object: refused writes, missing permissions, and
// handlers that have failed are nowhere else.
func addWarnings(ctx context.Context, c *Cluster, s *situation, e *Explanation) {
	namespace := s.object.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault // where events about objects of the cluster are
	}
	var found []corev1.Event
	options := metav1.ListOptions{FieldSelector: fields.Set{"involvedObject.uid": string(s.object.GetUID()), "type": corev1.EventTypeWarning}.String()}
	err := each(ctx, c.objects.Resource(corev1.SchemeGroupVersion.WithResource("events")).Namespace(namespace), options, func(u *unstructured.Unstructured) {
		event := corev1.Event{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &event) == nil && event.InvolvedObject.UID == s.object.GetUID() && event.Type == corev1.EventTypeWarning {
			found = append(found, event)
		}
	})
	if err != nil {
		e.Notes = append(e.Notes, fmt.Sprintf("The events about the object are unknown: %v.", err))
		return
	}
	slices.SortFunc(found, func(a, b corev1.Event) int { return lastSeen(b).Compare(lastSeen(a)) })
	for _, event := range found[:min(len(found), maxWarnings)] {
		e.Warnings = append(e.Warnings, fmt.Sprintf("%s at %s: %s", event.Reason, s.at(lastSeen(event)), event.Message))
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

// addLeader says who holds the lease of the operator, if its namespace is known.
func (c *Cluster) addLeader(ctx context.Context, now time.Time, e *Explanation) {
	replicas := c.Settings.WithDefaults().Replicas
	name := fmt.Sprintf("the lease %s/%s", replicas.LeaseNamespace, replicas.LeaseName)
	if e.isLeaseKnown = replicas.LeaseNamespace != ""; !e.isLeaseKnown {
		return
	}
	found, err := c.objects.Resource(coordinationv1.SchemeGroupVersion.WithResource("leases")).Namespace(replicas.LeaseNamespace).Get(ctx, replicas.LeaseName, metav1.GetOptions{})
	lease := &coordinationv1.Lease{}
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, lease)
	}
	switch {
	case apierrors.IsNotFound(err):
		e.Leader = []string{fmt.Sprintf("There is no %s: no operator that elects its leader by this lease has run there. In a manager of another program, the lease is the one of its LeaderElectionID.", name[len("the "):])}
		return
	case err != nil:
		e.Leader = []string{fmt.Sprintf("Which operator leads is unknown: %v.", err)}
		return
	}
	holder, until := HolderOf(lease, replicas.LeaseDuration)
	switch {
	case holder == "":
		e.stopped = []string{fmt.Sprintf("No operator holds %s: none with leader election is running. %s", name, withoutElection)}
	case until.Before(now):
		e.stopped = []string{fmt.Sprintf("The lease of %s, %s, has expired: %s. No operator with leader election is running, or none can renew it. %s", holder, name[len("the lease "):], (&situation{now: now}).at(until), withoutElection)}
	default:
		e.Leader = []string{fmt.Sprintf("%s holds %s: it leads, and other replicas, and other operators with this lease, stand by and call no handlers.", holder, name)}
	}
}

// withoutElection is what a lease does not say.
const withoutElection = "An operator without leader election would not be seen here."

// HolderOf returns who holds a lease, and until when without a renewal: for the duration, unless the
// lease has one. The holder is empty if there is none.
func HolderOf(lease *coordinationv1.Lease, duration time.Duration) (holder string, until time.Time) {
	spec := lease.Spec
	if spec.HolderIdentity == nil || spec.RenewTime == nil {
		return "", time.Time{}
	}
	if spec.LeaseDurationSeconds != nil {
		duration = time.Duration(*spec.LeaseDurationSeconds) * time.Second
	}
	return *spec.HolderIdentity, spec.RenewTime.Add(duration)
}
