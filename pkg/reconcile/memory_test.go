package reconcile

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/settings"
)

func version(text string) *object.Body {
	return object.NewBody(map[string]any{"metadata": map[string]any{"resourceVersion": text}})
}

func TestStaleVersions(t *testing.T) {
	tests := map[string]struct {
		floor, seen string
		want        bool
	}{
		"nothing was ever written":                {"", "7", false},
		"our own write is seen":                   {"7", "7", false},
		"something later is seen":                 {"7", "10", false},
		"something earlier is seen":               {"10", "7", true},
		"numbers of different lengths":            {"99", "100", false},
		"numbers larger than 64 bits":             {"99999999999999999999", "100000000000000000000", false},
		"something that cannot be compared":       {"7", "v8", true},
		"against something that cannot be":        {"v7", "8", true},
		"what is equal can always be compared":    {"v7", "v7", false},
		"the lack of a version is no version":     {"7", "", true},
		"a number that is written in another way": {"7", "07", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var m memory
			if test.floor != "" {
				m.written(version(test.floor))
			}
			if got := m.stale(test.seen); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestAWriteSettlesTheDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory{recollection: recollection{doubt: true, settled: "7"}}
		m.written(version("8"))
		first := time.Now()
		if m.doubt || m.floor != "8" || !m.floorAt.Equal(first) || m.settled != "" {
			t.Errorf("got %+v", m.recollection)
		}
		time.Sleep(time.Minute)
		m.settled = "8"
		m.written(version("8")) // a write that has changed nothing
		if !m.floorAt.Equal(first) || m.settled != "8" {
			t.Errorf("got %+v", m.recollection)
		}
	})
}

func TestMemoriesBelongToObjectsNotToNames(t *testing.T) {
	var m memory
	m.initial.Store(true)
	m.renew("u-1")
	if !m.initial.Load() {
		t.Error("the first object of the name was there before")
	}
	m.handled, m.floor = true, "7"
	m.renew("u-1")
	if !m.handled || m.floor != "7" || !m.initial.Load() {
		t.Errorf("the same object is forgotten: %+v", m.recollection)
	}
	m.renew("u-2")
	if m.handled || m.floor != "7" || m.uid != "u-2" || m.initial.Load() {
		t.Errorf("another object of the name has the memory of the first: %+v", m.recollection)
	}
}

func TestThingsAreSaidOnceAnObject(t *testing.T) {
	var m memory
	m.renew("u-1")
	if !m.once("a") || m.once("a") || !m.once("b") {
		t.Error("something is said twice, or never")
	}
	m.renew("u-2")
	if !m.once("a") {
		t.Error("it was never said of this object")
	}
}

func TestMemories(t *testing.T) {
	var all memories
	var users sync.WaitGroup
	found := make([]*memory, 16)
	for i := range found {
		users.Go(func() { found[i] = all.of(keyOf("a")) })
	}
	users.Wait()
	for _, m := range found {
		if m != found[0] {
			t.Fatal("one object has two memories")
		}
	}
	if all.of(keyOf("b")) == found[0] {
		t.Error("two objects have one memory")
	}
	all.forget(keyOf("a"))
	if all.of(keyOf("a")) == found[0] {
		t.Error("it was not forgotten")
	}
}

func TestAKeyShowsWhatItIs(t *testing.T) {
	if got := keyOf("a").String(); got != "kopfexamples.v1.kopf.dev/ns/a" {
		t.Errorf("got %s", got)
	}
}

// Errors of the framework and of the API pause one object, longer each time.
func TestPauses(t *testing.T) {
	tests := map[string]struct {
		delays []time.Duration
		want   []time.Duration
	}{
		"they grow, and the last one repeats": {
			[]time.Duration{time.Second, 2 * time.Second}, []time.Duration{time.Second, 2 * time.Second, 2 * time.Second},
		},
		"there are none": {[]time.Duration{}, []time.Duration{time.Nanosecond, time.Nanosecond}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &Engine{Config: Config{Settings: settings.Settings{Queueing: settings.Queueing{ErrorDelays: test.delays}}}}
				p := &pass{Engine: e, served: &served{}, memory: &memory{}, log: logr.Discard()}
				for i, want := range test.want {
					if got := p.pause(errors.New("the API is not there")); got != want || p.memory.failures != i+1 || !p.memory.notBefore.Equal(time.Now().Add(want)) {
						t.Errorf("attempt %d: got %s, %+v", i, got, p.memory.recollection)
					}
				}
			})
		})
	}
}
