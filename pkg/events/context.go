package events

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// Poster takes events; the Recorder is one, and tests may have their own.
type Poster interface {
	Post(ref corev1.ObjectReference, eventType, reason, message string)
}

type posterKey struct{}

// WithRecorder returns a context in which Event and its siblings post to the
// recorder. The engine calls it for every handler.
func WithRecorder(ctx context.Context, recorder Poster) context.Context {
	return context.WithValue(ctx, posterKey{}, recorder)
}

// From is the recorder that the context carries.
func From(ctx context.Context) (Poster, bool) {
	poster, ok := ctx.Value(posterKey{}).(Poster)
	return poster, ok
}
