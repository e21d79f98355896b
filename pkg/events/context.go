package events

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// Poster posts events. The Recorder implements it, and tests can implement their own.
type Poster interface {
	Post(ref corev1.ObjectReference, eventType, reason, message string)
}

type posterKey struct{}

// WithRecorder returns a context in which Event and its siblings post to
// the recorder. The engine calls it for every handler.
func WithRecorder(ctx context.Context, recorder Poster) context.Context {
	return context.WithValue(ctx, posterKey{}, recorder)
}

// From returns the recorder of the context.
func From(ctx context.Context) (Poster, bool) {
	poster, ok := ctx.Value(posterKey{}).(Poster)
	return poster, ok
}
