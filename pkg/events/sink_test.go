package events_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/events"
)

func TestPostDoesNotBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		logger, lines := logs()
		r := events.New(server, events.Options{Capacity: 2, Logger: logger})
		for i := range 5 {
			r.Post(ref, "Normal", "R", fmt.Sprint(i))
		}
		if stats := r.Stats(); stats != (events.Stats{Dropped: 3}) {
			t.Errorf("got %+v", stats)
		}
		stop := start(t, r)
		synctest.Wait()
		if len(server.all()) != 2 {
			t.Errorf("the waiting events are not posted: %v", server.all())
		}
		if got := lines(); len(got) != 1 || !strings.Contains(got[0], `"count"=3`) {
			t.Errorf("logged: %v", got)
		}
		stop()
	})
}

func TestEventsAreRetriedWhileAPIServerIsUnavailable(t *testing.T) {
	for name, err := range map[string]error{
		"it is unreachable": errors.New("connection refused"),
		"it is busy":        apierrors.NewTooManyRequests("", 1),
		"it is starting":    apierrors.NewServiceUnavailable("etcd"),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, events.Options{}, func(t *testing.T, b *bench) {
				b.server.failWith(func(context.Context) error { return err })
				b.Post(ref, "Normal", "R", "x")
				time.Sleep(10 * time.Second)
				b.server.failWith(nil)
				time.Sleep(10 * time.Second)
				if stats := b.Stats(); stats != (events.Stats{Posted: 1}) {
					t.Errorf("got %+v", stats)
				}
				if got := b.logs(); len(got) != 0 {
					t.Errorf("logged: %v", got)
				}
			})
		})
	}
}

func TestEventIsNotDuplicatedAfterLostResponse(t *testing.T) {
	inBubble(t, events.Options{}, func(t *testing.T, b *bench) {
		b.server.loseAnswer = true
		b.Post(ref, "Normal", "R", "x")
		time.Sleep(2 * time.Second)
		if stats := b.Stats(); stats != (events.Stats{Posted: 1}) || len(b.server.all()) != 1 {
			t.Errorf("got %+v, %v", stats, b.server.all())
		}
	})
}

func TestRejectedEventsAreCounted(t *testing.T) {
	terminating := apierrors.NewForbidden(corev1.Resource("events"), "x", errors.New("the namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	tests := map[string]struct {
		err    error
		failed int64
		log    string
	}{
		"the namespace is being removed": {terminating, 0, ""},
		"the namespace is gone":          {apierrors.NewNotFound(corev1.Resource("namespaces"), "ns"), 0, ""},
		"events are not allowed":         {apierrors.NewForbidden(corev1.Resource("events"), "x", errors.New("no")), 3, "allow the operator to create and patch events"},
		"the event is invalid":           {apierrors.NewBadRequest("no"), 3, "could not be posted"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, events.Options{}, func(t *testing.T, b *bench) {
				b.server.failWith(func(context.Context) error { return test.err })
				for i := range 3 {
					b.Post(ref, "Normal", "R", fmt.Sprintf("s3cret %d", i))
				}
				synctest.Wait()
				if stats := b.Stats(); stats != (events.Stats{Failed: test.failed}) {
					t.Errorf("got %+v", stats)
				}
				got := strings.Join(b.logs(), "\n")
				if (test.log == "") != (got == "") || !strings.Contains(got, test.log) || strings.Contains(got, "\n") {
					t.Errorf("logged: %v", got)
				}
				if strings.Contains(got, "s3cret") {
					t.Errorf("the log contains the message: %v", got)
				}
				time.Sleep(time.Minute)
				b.Post(ref, "Normal", "R", "later")
				synctest.Wait()
				if again := len(b.logs()); test.log != "" && again != 2 {
					t.Errorf("a minute later, there are %d log lines", again)
				}
			})
		})
	}
}

func TestWaitingEventsArePostedOnShutdown(t *testing.T) {
	inBubble(t, events.Options{}, func(t *testing.T, b *bench) {
		b.stop()
		b.Post(ref, "Normal", "R", "the last one")
		b.stop = start(t, b.Recorder)
		b.stop()
		if len(b.server.all()) != 1 {
			t.Error("a waiting event is lost")
		}
	})
}

func TestShutdownIsBounded(t *testing.T) {
	inBubble(t, events.Options{DrainTimeout: 3 * time.Second}, func(t *testing.T, b *bench) {
		b.server.failWith(func(ctx context.Context) error {
			<-ctx.Done() // never responds
			return ctx.Err()
		})
		for i := range 4 {
			b.Post(ref, "Normal", "R", fmt.Sprint(i))
		}
		synctest.Wait()
		before := time.Now()
		b.stop()
		if waited := time.Since(before); waited != 3*time.Second {
			t.Errorf("stopped after %s", waited)
		}
		if stats := b.Stats(); stats != (events.Stats{Failed: 1, Dropped: 3}) {
			t.Errorf("got %+v", stats)
		}
	})
}

func TestNilRecorderPostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *events.Recorder
		r.Post(ref, "Normal", "R", "x")
		if r.Stats() != (events.Stats{}) {
			t.Error("it counts events")
		}
		if err := events.Info(events.WithRecorder(context.Background(), r), map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p"},
		}, "R", "x"); err != nil {
			t.Error(err)
		}
		start(t, r)()
	})
}
