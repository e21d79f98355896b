package window

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// network is an API server without sockets, which works in a synctest bubble.
type network struct {
	window *Window
	answer func(*http.Request) (code int, took time.Duration)

	mu       sync.Mutex
	inFlight int
	most     int      // in flight at the same time
	sent     []string // the paths, in order
	refused  int
}

func newNetwork(limit int, answer func(*http.Request) (int, time.Duration)) *network {
	return &network{window: New(limit), answer: answer}
}

func (n *network) RoundTrip(request *http.Request) (*http.Response, error) {
	n.mu.Lock()
	n.inFlight++
	n.most = max(n.most, n.inFlight)
	n.sent = append(n.sent, request.URL.Path)
	code, took := n.answer(request)
	if code == http.StatusTooManyRequests {
		n.refused++
	}
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.inFlight--
	}()
	select {
	case <-time.After(took):
	case <-request.Context().Done():
		return nil, request.Context().Err()
	}
	response := &http.Response{StatusCode: code, Header: http.Header{}, Body: http.NoBody, Request: request}
	if code == http.StatusTooManyRequests {
		response.Header.Set("Retry-After", "1")
	}
	return response, nil
}

// request sends a request through the window, and returns its status.
func (n *network) request(ctx context.Context, method, path string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://example.com"+path, strings.NewReader("{}"))
	if err != nil {
		return 0, err
	}
	response, err := n.window.Wrap(n).RoundTrip(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// patch patches an object until that succeeds, as clients do: after a pause.
func (n *network) patch(t *testing.T, path string) {
	for {
		code, err := n.request(t.Context(), http.MethodPatch, path)
		if err != nil {
			t.Error(err)
			return
		}
		if code == http.StatusOK {
			return
		}
		time.Sleep(time.Second)
	}
}

func thing(n int) string  { return fmt.Sprintf("/apis/example.com/v1/namespaces/ns/things/thing-%d", n) }
func plural(n int) string { return fmt.Sprintf("/api/v1/namespaces/ns/configmaps/map-%d", n) }

// inTime answers always.
func inTime(*http.Request) (int, time.Duration) { return http.StatusOK, 5 * time.Millisecond }

// limited refuses requests when there are more than so many in flight.
func limited(seats int) *network {
	n := newNetwork(200, nil)
	n.answer = func(*http.Request) (int, time.Duration) {
		if n.inFlight > seats {
			return http.StatusTooManyRequests, time.Millisecond
		}
		return http.StatusOK, 5 * time.Millisecond
	}
	return n
}

// A hundred workers write 5,000 objects. The server has few seats, and another client has some of them.
func TestFewRequestsAreRefused(t *testing.T) {
	for _, seats := range []int{1, 2, 5, 20} {
		t.Run(fmt.Sprint(seats, " seats"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := limited(seats)
				began := time.Now()
				const objects = 5000
				var workers sync.WaitGroup
				for worker := range 100 {
					workers.Go(func() {
						for object := worker; object < objects; object += 100 {
							n.patch(t, thing(object))
						}
					})
				}
				workers.Wait()
				if share := float64(n.refused) / float64(len(n.sent)); share > 0.02 {
					t.Errorf("%.1f %% of the requests are refused", 100*share)
				}
				// With all seats in use all the time, and twice as long.
				if took, best := time.Since(began), objects/time.Duration(seats)*5*time.Millisecond; took > 2*best+10*time.Second {
					t.Errorf("it takes %v, and at best %v", took, best)
				}
				if state := n.window.State(); state.InFlight != 0 || state.Waiting != 0 || state.Closed[string(Refused)] == 0 {
					t.Errorf("got %+v", state)
				}
			})
		})
	}
}

// A server that refuses everything gets one request a second.
func TestAServerThatRefusesEverythingIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := limited(0)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		var workers sync.WaitGroup
		for worker := range 100 {
			workers.Go(func() {
				for ctx.Err() == nil {
					_, _ = n.request(ctx, http.MethodPatch, thing(worker))
				}
			})
		}
		workers.Wait()
		if len(n.sent) > 5*60+10 {
			t.Errorf("%d requests are sent in 5 minutes", len(n.sent))
		}
	})
}

// A write of another resource comes next, however many requests of the first one wait, and even if all
// of those in flight take long.
func TestABurstDoesNotHoldOtherResources(t *testing.T) {
	tests := map[string]struct{ took, most time.Duration }{
		"the requests of the burst take 5 ms": {5 * time.Millisecond, 10 * time.Millisecond},
		"they take an hour":                   {time.Hour, 10 * time.Millisecond},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				n := newNetwork(20, func(request *http.Request) (int, time.Duration) {
					if strings.Contains(request.URL.Path, "/things/") {
						return http.StatusOK, test.took
					}
					return http.StatusOK, 5 * time.Millisecond
				})
				var burst sync.WaitGroup
				for object := range 5000 {
					burst.Go(func() { _, _ = n.request(ctx, http.MethodPatch, thing(object)) })
				}
				synctest.Wait()
				if state := n.window.State(); state.Waiting < 4000 {
					t.Fatalf("got %+v", state)
				}
				for object := range 100 {
					began := time.Now()
					n.patch(t, plural(object))
					if took := time.Since(began); took > test.most {
						t.Errorf("the other write takes %v", took)
					}
				}
				cancel()
				burst.Wait()
			})
		})
	}
}

// Of two bursts, each has half of the window.
func TestResourcesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(4, inTime)
		var bursts sync.WaitGroup
		for object := range 500 {
			bursts.Go(func() { n.patch(t, thing(object)) })
		}
		synctest.Wait()
		for object := range 100 {
			bursts.Go(func() { n.patch(t, plural(object)) })
		}
		bursts.Wait()
		last := 0
		for place, path := range n.sent {
			if strings.Contains(path, "/configmaps/") {
				last = place
			}
		}
		if last > 220 {
			t.Errorf("the last of 100 requests that came later is number %d", last)
		}
	})
}

// Within a resource, requests are sent in the order in which they have come.
func TestRequestsOfAResourceStayInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(1, inTime)
		var all sync.WaitGroup
		for object := range 50 {
			all.Go(func() { n.patch(t, thing(object)) })
			synctest.Wait()
		}
		all.Wait()
		for place, path := range n.sent {
			if path != thing(place) {
				t.Fatalf("number %d is %s", place, path)
			}
		}
	})
}

func TestTheLimitIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(200, inTime)
		n.window.Limit(10)
		var all sync.WaitGroup
		for object := range 1000 {
			all.Go(func() { n.patch(t, thing(object)) })
		}
		all.Wait()
		if n.most != 10 {
			t.Errorf("%d requests were in flight", n.most)
		}
	})
}

// A request that waits ends with its context, or with the one that is given for that, and was not sent. Its
// place in the line is free.
func TestARequestThatWaitsEndsWithItsContext(t *testing.T) {
	tests := map[string]func(context.Context) (context.Context, context.CancelFunc){
		"its own": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		},
		"another one": func(ctx context.Context) (context.Context, context.CancelFunc) {
			until, cancel := context.WithTimeout(ctx, time.Second)
			return WaitUntil(context.WithoutCancel(ctx), until), cancel
		},
	}
	for name, with := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(1, func(*http.Request) (int, time.Duration) { return http.StatusOK, time.Minute })
				var first sync.WaitGroup
				first.Go(func() { n.patch(t, thing(0)) })
				synctest.Wait()
				ctx, cancel := with(t.Context())
				defer cancel()
				began := time.Now()
				_, err := n.request(ctx, http.MethodPatch, thing(1))
				if !errors.Is(err, ErrNotSent) || !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
					t.Errorf("got %v after %v", err, time.Since(began))
				}
				if state := n.window.State(); state.InFlight != 1 || state.Waiting != 0 || len(n.sent) != 1 {
					t.Errorf("got %+v", state)
				}
				first.Wait()
				n.patch(t, thing(2))
			})
		})
	}
}

// A request in flight heeds only its own context.
func TestARequestInFlightDoesNotEndWithTheContextOfTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(1, func(*http.Request) (int, time.Duration) { return http.StatusOK, time.Minute })
		until, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if code, err := n.request(WaitUntil(t.Context(), until), http.MethodPatch, thing(0)); code != http.StatusOK {
			t.Errorf("got %d, %v", code, err)
		}
	})
}

// The seat of a request whose context ends at the moment when it is granted is not lost.
func TestASeatIsNotLost(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork(1, inTime)
			var all sync.WaitGroup
			for object := range 10 {
				all.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(object)*5*time.Millisecond)
					defer cancel()
					_, _ = n.request(ctx, http.MethodPatch, thing(object))
				})
			}
			all.Wait()
			n.patch(t, thing(0))
			if state := n.window.State(); state.InFlight != 0 || state.Waiting != 0 {
				t.Errorf("got %+v", state)
			}
		})
	}
}

// body notes whether it is closed.
type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error {
	b.closed = true
	return nil
}

// A transport must close the body also if it does not send it, and when code below panics, the seat is free.
func TestNothingIsLeftBehind(t *testing.T) {
	n := newNetwork(1, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n.window.Limit(1)
	held, err := n.window.enter(t.Context(), nil, resource{})
	if err != nil {
		t.Fatal(err)
	}
	content := &body{Reader: strings.NewReader("{}")}
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, "http://example.com"+thing(0), content)
	if err != nil {
		t.Fatal(err)
	}
	if response, err := n.window.Wrap(n).RoundTrip(request); err == nil || !content.closed {
		_ = response.Body.Close()
		t.Errorf("got %v", err)
	}
	n.window.exit(held, outcome{})
	n.answer = func(*http.Request) (int, time.Duration) { panic("a transport of users") }
	func() {
		defer func() { _ = recover() }()
		_, _ = n.request(t.Context(), http.MethodPatch, thing(0))
	}()
	if state := n.window.State(); state.InFlight != 0 {
		t.Errorf("got %+v", state)
	}
}

func BenchmarkWindow(b *testing.B) {
	w := New(200)
	request, err := http.NewRequestWithContext(b.Context(), http.MethodPatch, "http://example.com"+thing(0), http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}
	transport := w.Wrap(answering{answer})
	b.ReportAllocs()
	for b.Loop() {
		response, err := transport.RoundTrip(request)
		if err != nil {
			b.Fatal(err)
		}
		_ = response.Body.Close()
	}
}

type answering struct{ answer *http.Response }

func (a answering) RoundTrip(*http.Request) (*http.Response, error) { return a.answer, nil }
