package erasing

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/storage"
)

// fixture is a storage, and the erasures that call it.
type fixture struct {
	*testing.T
	*Erasures

	mu       sync.Mutex
	erase    func(ctx context.Context, uid types.UID) error // nil: it succeeds
	erased   []types.UID
	calls    int
	enqueued []object.Key
	log      []string
	stopping chan struct{}
	exists   atomic.Bool
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{T: t, stopping: make(chan struct{})}
	f.Erasures = New(Config{
		Storages: []storage.Eraser{f}, Permits: call.NewPermits(1), Delays: []time.Duration{time.Second, time.Minute},
		Exists: func(object.Key, types.UID) bool { return f.exists.Load() },
		Enqueue: func(key object.Key) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.enqueued = append(f.enqueued, key)
		},
		Log: func(key object.Key, last *object.Body) logr.Logger {
			return funcr.New(func(_, line string) {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.log = append(f.log, line)
			}, funcr.Options{}).WithValues("name", key.Name, "uid", last.UID())
		},
	})
	return f
}

// Erase implements storage.Eraser.
func (f *fixture) Erase(ctx context.Context, body *object.Body) error {
	f.mu.Lock()
	f.calls++
	erase := f.erase
	f.mu.Unlock()
	if erase != nil {
		if err := erase(ctx, body.UID()); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.erased = append(f.erased, body.UID())
	return nil
}

func (f *fixture) countCalls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// behave changes what the storage does.
func (f *fixture) behave(erase func(ctx context.Context, uid types.UID) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.erase = erase
}

func keyOf(name string) object.Key {
	return object.Key{Resource: "examples", NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}
}

// add adds objects that are gone, whose uids are u- and their names.
func (f *fixture) add(names ...string) {
	f.Helper()
	for _, name := range names {
		last, err := object.ParseSnapshot(fmt.Appendf(nil, `{"metadata": {"namespace": "ns", "name": %q, "uid": "u-%s"}}`, name, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(keyOf(name), last)
	}
}

func (f *fixture) begin(ctx context.Context, names ...string) {
	for _, name := range names {
		f.Begin(ctx, f.stopping, keyOf(name))
	}
}

// advance lets time pass.
func (f *fixture) advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (f *fixture) expectErased(want ...types.UID) {
	f.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	got := slices.Sorted(slices.Values(f.erased))
	if !slices.Equal(got, want) {
		f.Errorf("erased %q, want %q", got, want)
	}
}

// expectWaiting expects that erasures wait for a turn, and that turns were requested.
func (f *fixture) expectWaiting(keys, requested int) {
	f.Helper()
	waiting := f.Keys()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(waiting) != keys || len(f.enqueued) != requested {
		f.Errorf("%v wait, and the turns %v were requested", waiting, f.enqueued)
	}
}

// expectLog expects this many lines with all texts.
func (f *fixture) expectLog(lines int, texts ...string) {
	f.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	got := 0
	for _, line := range f.log {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			got++
		}
	}
	if got != lines {
		f.Errorf("%d lines, want %d with %q:\n%s", got, lines, texts, strings.Join(f.log, "\n"))
	}
}

func anyKey(object.Key) bool { return true }

func TestAnErasureBeginsInTheTurnOfItsObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.add("a", "b")
		f.advance(time.Hour)
		f.expectErased()
		f.begin(t.Context(), "a")
		f.advance(0)
		f.expectErased("u-a")
		f.begin(t.Context(), "a", "b") // the first has nothing more to erase
		f.advance(0)
		f.expectErased("u-a", "u-b")
		f.expectLog(0)
	})
}

func TestFailuresAreRetriedAndLogged(t *testing.T) {
	for name, fail := range map[string]func() error{
		"an error":                 func() error { return errors.New("the database is down") },
		"a panic":                  func() error { panic("the database is down") },
		"the end of the goroutine": func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				f.behave(func(context.Context, types.UID) error { return fail() })
				f.add("a")
				f.begin(t.Context(), "a")
				f.advance(time.Second + 2*time.Minute)
				f.expectErased()
				f.expectLog(4, "has not erased", `"uid"="u-a"`, `"error"=`)
				f.behave(nil)
				f.advance(time.Minute)
				f.expectErased("u-a")
				f.advance(time.Hour)
				f.expectLog(4)
			})
		})
	}
}

// A storage that is slow for some objects holds back no others, although there is only one permit.
func TestSlowErasuresHoldBackNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.behave(func(_ context.Context, uid types.UID) error {
			if uid != "u-z" {
				time.Sleep(time.Hour)
			}
			return nil
		})
		f.add("a", "b", "c", "z")
		f.begin(t.Context(), "a", "b", "c", "z")
		f.advance(time.Second)
		f.expectErased("u-z")
		f.advance(time.Hour)
		f.expectErased("u-a", "u-b", "u-c", "u-z")
	})
}

func TestAnObjectThatIsBackIsNotErased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.behave(func(context.Context, types.UID) error { return errors.New("the database is down") })
		f.add("a")
		f.begin(t.Context(), "a")
		f.advance(0)
		f.exists.Store(true)
		f.behave(nil)
		f.advance(time.Hour)
		f.expectErased()
	})
}

func TestAnErasureGoesOnAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.behave(func(context.Context, types.UID) error { return errors.New("the database is down") })
		f.add("a")
		f.begin(t.Context(), "a")
		f.advance(time.Second)
		close(f.stopping)
		f.advance(0)
		f.Finish(t.Context(), func(object.Key) bool { return false })
		f.advance(time.Hour)
		f.expectWaiting(1, 0)
		if calls := f.countCalls(); calls != 2 {
			t.Errorf("there were %d calls", calls)
		}
		f.behave(nil)
		f.stopping = make(chan struct{})
		f.begin(t.Context(), "a")
		f.advance(0)
		f.expectErased("u-a")
	})
}

// There is no turn anymore, and no pass.
func TestTheEndOfTheWorkIsALastChance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.behave(func(_ context.Context, uid types.UID) error {
			time.Sleep(time.Second)
			if uid == "u-c" {
				return errors.New("the database is down")
			}
			return nil
		})
		f.add("a", "b", "c", "d", "e")
		close(f.stopping)
		f.Finish(t.Context(), func(key object.Key) bool { return key.Name != "b" })
		f.expectErased("u-a", "u-d", "u-e")
		f.Stop()
		f.expectLog(2, "still keeps its data")
		f.expectLog(1, "still keeps its data", `"uid"="u-b"`)
		f.expectLog(1, "still keeps its data", `"uid"="u-c"`)
	})
}

func TestTheEndDoesNotWaitForStoragesThatDoNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		free := make(chan struct{})
		f.behave(func(ctx context.Context, uid types.UID) error {
			if uid == "u-a" {
				<-ctx.Done()
				return ctx.Err()
			}
			<-free
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		f.add("a", "b")
		f.begin(ctx, "a", "b")
		f.advance(time.Second)
		close(f.stopping)
		began := time.Now()
		f.Finish(ctx, anyKey)
		f.Stop()
		if took := time.Since(began); took > time.Minute+patience {
			t.Errorf("it took %v", took)
		}
		f.expectLog(1, "has not returned", `"uid"="u-b"`)
		f.expectLog(1, "has not erased", `"uid"="u-a"`, "context deadline exceeded")
		f.expectLog(1, "still keeps its data", `"uid"="u-a"`)
		close(free)
		f.advance(time.Hour)
		f.expectErased("u-b")
	})
}

// The next workers are there when the call fails.
func TestAnErasureThatOutlastsAPauseGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.behave(func(context.Context, types.UID) error {
			time.Sleep(time.Hour)
			return errors.New("the database is down")
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		f.add("a")
		f.begin(ctx, "a")
		f.advance(0)
		close(f.stopping)
		f.Finish(ctx, anyKey)
		f.expectLog(1, "has not returned")
		f.advance(time.Hour)
		f.expectWaiting(1, 1)
	})
}

func TestWithoutStoragesNothingIsDone(t *testing.T) {
	none := New(Config{})
	if none != nil {
		t.Fatal("there is nothing to erase")
	}
	none.Add(keyOf("a"), nil)
	none.Begin(t.Context(), nil, keyOf("a"))
	none.Finish(t.Context(), anyKey)
	none.Stop()
	if got := none.Keys(); got != nil {
		t.Errorf("got %v", got)
	}
}
