package events

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/kopf-go/kopf/pkg/internal/sleep"
)

// recordToSink posts one event to the API server, or adds it to the count of an earlier one.
func (r *Recorder) recordToSink(ctx context.Context, event *corev1.Event) {
	result, err := r.correlator.EventCorrelate(event)
	if err != nil {
		r.fail(event, err)
		return
	}
	if result.Skip {
		r.suppressed.Add(1)
		return
	}
	// The correlator drops these fields when it combines events.
	result.Event.Name = r.withPrefix(result.Event.Name)
	result.Event.ReportingController = event.ReportingController
	result.Event.ReportingInstance = event.ReportingInstance
	switch err := r.sendWithRetry(ctx, result); {
	case err == nil, apierrors.IsAlreadyExists(err): // the response to an earlier attempt was lost
		r.posted.Add(1)
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		r.options.Logger.V(1).Info("An event is not posted: its namespace is gone.", logValues(event)...)
	default:
		r.fail(event, err)
	}
}

func (r *Recorder) fail(event *corev1.Event, err error) {
	r.failed.Add(1)
	r.losses.failed(event, err)
}

// sendWithRetry sends an event, and retries while the API server is unreachable or busy.
// Meanwhile, the other events wait, because they would fail, too.
func (r *Recorder) sendWithRetry(ctx context.Context, result *record.EventCorrelateResult) error {
	delay := retryDelay
	for range retries {
		err := r.send(ctx, result)
		if !isTransient(err) {
			return err
		}
		if !sleep.For(ctx, delay) {
			return err
		}
		delay *= 2
	}
	return r.send(ctx, result)
}

func (r *Recorder) send(ctx context.Context, result *record.EventCorrelateResult) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	saved, err := r.write(ctx, result)
	if err == nil {
		r.correlator.UpdateState(saved)
	}
	return err
}

func (r *Recorder) write(ctx context.Context, result *record.EventCorrelateResult) (*corev1.Event, error) {
	event := result.Event
	events := r.client.Events(result.Event.Namespace)
	if event.Count > 1 {
		saved, err := events.Patch(ctx, event.Name, types.StrategicMergePatchType, result.Patch, metav1.PatchOptions{})
		if !apierrors.IsNotFound(err) {
			return saved, err
		}
		event.ResourceVersion = "" // the earlier event has expired: create it again
	}
	return events.Create(ctx, event, metav1.CreateOptions{})
}

// isTransient reports whether another attempt may succeed: the API server is busy or has
// not responded.
func isTransient(err error) bool {
	var unsendable *rest.RequestConstructionError
	if err == nil || errors.As(err, &unsendable) {
		return false
	}
	if apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
		return true
	}
	return apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err)
}
