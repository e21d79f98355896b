package kube

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kopf-go/kopf/pkg/settings"
)

// startWatch requests a watch, and returns what was reported in the meantime.
func startWatch(ctx context.Context, t *testing.T, r *replies) (started watch.Interface, outcomes []error, err error) {
	t.Helper()
	s := settings.Default()
	source := newClient(t, r, s).ListWatch("", s.Watching, func(err error) { outcomes = append(outcomes, err) })
	started, err = source.(cache.WatcherWithContext).WatchWithContext(ctx, metav1.ListOptions{})
	return started, outcomes, err
}

func TestWatchIsRetriedUntilTheServerIsBack(t *testing.T) {
	refused := reply{err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}
	tests := map[string]reply{
		"refused":     refused,
		"unavailable": {code: 503, retryAfter: "1"},
		"throttled":   {code: 429},
		"reset":       {err: reading},
		"truncated":   {err: io.EOF},
	}
	for name, failure := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stream, _ := io.Pipe()
				r := &replies{all: []reply{failure, failure, failure, {code: 200, stream: stream}}}
				started, outcomes, err := startWatch(t.Context(), t, r)
				if err != nil {
					t.Fatal(err)
				}
				started.Stop()
				if len(outcomes) != 4 || outcomes[0] == nil || outcomes[3] != nil {
					t.Errorf("got %v", outcomes)
				}
			})
		})
	}
}

func TestOtherErrorsOfAWatchAreReturned(t *testing.T) {
	for name, failure := range map[string]reply{
		"expired": {code: 410}, "forbidden": {code: 403}, "not found": {code: 404}, "an error": {code: 500}, "a bad certificate": {err: errors.New("bad")},
	} {
		t.Run(name, func(t *testing.T) {
			_, outcomes, err := startWatch(t.Context(), t, &replies{all: []reply{failure}})
			if err == nil || len(outcomes) != 1 || outcomes[0] == nil {
				t.Errorf("got %v, and %v were reported", err, outcomes)
			}
		})
	}
}

// An outage of an hour takes about a hundred requests, and none is made after the
// context is done.
func TestRetriesOfAWatchSlowDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		r := &replies{all: []reply{{code: 503}}}
		_, _, err := startWatch(ctx, t, r)
		if err == nil || time.Since(r.from) != time.Hour {
			t.Errorf("got %v after %v", err, time.Since(r.from))
		}
		if n := len(r.sent); n < 100 || n > 130 {
			t.Errorf("got %d requests", n)
		}
		if last := r.sent[len(r.sent)-1] - r.sent[len(r.sent)-2]; last < 30*time.Second || last > 36*time.Second {
			t.Errorf("the last delay was %v", last)
		}
	})
}

func TestIdleWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stream, server := io.Pipe()
		started, _, err := startWatch(t.Context(), t, &replies{all: []reply{{code: 200, stream: stream}}})
		if err != nil {
			t.Fatal(err)
		}
		from := time.Now()
		for range 3 { // every event restarts the timeout
			time.AfterFunc(2*time.Minute, func() { _, _ = io.WriteString(server, event("BOOKMARK", "", 0)+"\n") })
			if got := <-started.ResultChan(); got.Type != watch.Bookmark {
				t.Fatalf("got %v", got)
			}
		}
		if got, open := <-started.ResultChan(); open {
			t.Errorf("got %v: it must end as if the server had ended it", got)
		}
		if took := time.Since(from); took != 9*time.Minute {
			t.Errorf("it ended after %v", took)
		}
		started.Stop()
	})
}

func TestUnansweredWatchIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stream, _ := io.Pipe()
		started, outcomes, err := startWatch(t.Context(), t, &replies{all: []reply{{}, {code: 200, stream: stream}}})
		if err != nil || len(outcomes) != 2 || !errors.Is(outcomes[0], errNoAnswer) {
			t.Fatalf("got %v, and %v were reported", err, outcomes)
		}
		started.Stop()
	})
}
