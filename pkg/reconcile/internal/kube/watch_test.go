package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/pkg/internal/relist"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/settings"
)

// startWatch requests a watch, and returns what was reported in the meantime.
func startWatch(ctx context.Context, t *testing.T, r *replies) (started watch.Interface, outcomes []error, err error) {
	t.Helper()
	s := settings.Default()
	source := newClient(t, r, s).Source("", nil, s.Watching, func(err error) { outcomes = append(outcomes, err) })
	started, err = source.ListWatch().WatchWithContext(ctx, metav1.ListOptions{})
	return started, outcomes, err
}

// discarding is a store that only notes when it was filled.
type discarding struct{ filled chan struct{} }

func (discarding) Add(any) error    { return nil }
func (discarding) Update(any) error { return nil }
func (discarding) Delete(any) error { return nil }
func (discarding) Resync() error    { return nil }
func (d discarding) Replace([]any, string) error {
	close(d.filled)
	return nil
}

// reflect lists and watches until the objects are listed, or the context is done. It returns what was
// reported.
func reflect(ctx context.Context, t *testing.T, r *replies) (outcomes []error) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	s, store := settings.Default(), discarding{make(chan struct{})}
	source := newClient(t, r, s).Source("", nil, s.Watching, func(err error) { outcomes = append(outcomes, err) })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		relist.Run(ctx, s.Watching, source, &object.Snapshot{}, store, nil)
	}()
	select {
	case <-store.filled:
	case <-ctx.Done():
	}
	cancel()
	<-ended
	return outcomes
}

func TestListIsRetriedUntilTheServerIsBack(t *testing.T) {
	refused := reply{err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}
	tests := map[string]reply{
		"refused":     refused,
		"unavailable": {code: 503, retryAfter: "1"},
		"throttled":   {code: 429},
		"reset":       {err: reading},
		"truncated":   {err: io.EOF},
		"unanswered":  {},
	}
	for name, failure := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stream, server := io.Pipe()
				go func() {
					bookmark := fmt.Sprintf(`{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7","annotations":{%q:"true"}}}}`, metav1.InitialEventsAnnotationKey)
					_, _ = io.WriteString(server, bookmark+"\n")
				}()
				r := &replies{all: []reply{failure, failure, failure, {code: 200, stream: stream}}}
				outcomes := reflect(t.Context(), t, r)
				if len(r.sent) != 4 || len(outcomes) != 4 || outcomes[0] == nil || outcomes[3] != nil {
					t.Errorf("got %d requests, and %v", len(r.sent), outcomes)
				}
				if name == "unanswered" && !errors.Is(outcomes[0], relist.ErrNoAnswer) {
					t.Errorf("got %v", outcomes)
				}
			})
		})
	}
}

func TestErrorsOfAWatchAreReported(t *testing.T) {
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
func TestRetriesOfAListSlowDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		r := &replies{all: []reply{{code: 503}}}
		reflect(ctx, t, r)
		if time.Since(r.from) != time.Hour {
			t.Errorf("it ended after %v", time.Since(r.from))
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
