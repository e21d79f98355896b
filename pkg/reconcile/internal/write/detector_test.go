package write

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
)

func delays() []time.Duration { return []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} }

// world is an object with an operator that writes to it.
type world struct {
	detector *detector
	body     m
	finding  finding       // of the last write
	delay    time.Duration // after it
	begins   int           // how often contention began
}

// one is an object.
var one = identity{uid: "u-1"}

func newWorld() *world { return &world{detector: newDetector(delays()), body: m{}} }

// write is a write of the operator.
func (w *world) write(wanted m) {
	merge := patch.Minimal(w.body, wanted)
	if merge == nil {
		return
	}
	w.finding = w.detector.check(one, w.body, merge)
	if w.finding.begins {
		w.begins++
	}
	w.body = patch.ApplyMerge(w.body, merge)
	w.delay = w.detector.recordWrite(one, merge, func(object.Path, any) bool { return true }, w.finding)
}

// others is a write of another writer.
func (w *world) others(wanted m) { w.body = patch.ApplyMerge(w.body, wanted) }

func TestContention(t *testing.T) {
	spec := func(x any) m { return m{"spec": m{"x": x}} }
	list := func(x ...any) m { return m{"status": m{"conditions": x}} }
	mapping := func(i int, otherwise any) m { // in every other turn
		return m{"status": m{"kopf": []any{m{"x": m{"y": i}}, otherwise}[i%2]}}
	}
	record := func(text string) m { return m{"metadata": m{"annotations": m{"kopf.zalando.org/a": text}}} }
	tests := map[string]struct {
		ours, theirs func(i int) m
		pause        time.Duration // after each write
		want         bool
	}{
		"both restore their values": {func(int) m { return spec("a") }, func(int) m { return spec("b") }, 0, true},
		"the other value changes each time": {
			func(int) m { return spec("a") }, func(i int) m { return spec(i) }, 0, true,
		},
		"our value changes each time":      {func(i int) m { return spec(i) }, func(int) m { return spec("b") }, 0, true},
		"they add what we remove":          {func(int) m { return spec(nil) }, func(int) m { return spec("b") }, 0, true},
		"they remove what we add":          {func(int) m { return spec("a") }, func(int) m { return spec(nil) }, 0, true},
		"slow, but without a break":        {func(int) m { return spec("a") }, func(int) m { return spec("b") }, 4 * time.Second, true},
		"the same list":                    {func(int) m { return list("a") }, func(int) m { return list("b") }, 0, true},
		"records in one annotation":        {func(i int) m { return record("ours") }, func(int) m { return record("theirs") }, 0, true},
		"a tool that applies every minute": {func(int) m { return spec("a") }, func(int) m { return spec("b") }, 30 * time.Second, false},
		"no other writer":                  {func(i int) m { return spec(i % 2) }, func(int) m { return nil }, 0, false},
		"we remove mappings, and add them": {func(i int) m { return mapping(i, nil) }, func(int) m { return nil }, 0, false},
		"we replace mappings":              {func(i int) m { return mapping(i, "text") }, func(int) m { return nil }, 0, false},
		"they remove our mappings":         {func(int) m { return mapping(0, nil) }, func(int) m { return mapping(1, nil) }, 0, true},
		"other fields":                     {func(i int) m { return spec(i % 2) }, func(i int) m { return m{"status": m{"x": i}} }, 0, false},
		"others write to the same mapping": {func(i int) m { return spec(i % 2) }, func(i int) m { return m{"spec": m{"y": i}} }, 0, false},
		"we do not restore the value":      {func(int) m { return nil }, func(i int) m { return spec(i) }, 0, false},
		"we adopt the items of others":     {func(i int) m { return list(i) }, func(i int) m { return list(i, "other") }, 0, false},
		"they change what we never wrote":  {func(i int) m { return m{"status": m{"x": i}} }, func(i int) m { return spec(i % 2) }, 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				for i := range 3 * threshold {
					w.write(test.ours(i))
					time.Sleep(test.pause)
					w.others(test.theirs(i))
					time.Sleep(test.pause)
				}
				if got := w.begins == 1 && w.delay == 4*time.Second; got != test.want || !test.want && w.begins > 0 {
					t.Errorf("contention began %d times, the last delay was %v, for %v", w.begins, w.delay, w.finding.fields)
				}
			})
		})
	}
}

// A quick and persistent person does not cause contention.
func TestPersistentPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for range 5 {
			for range threshold - 1 {
				w.write(m{"spec": m{"x": "a"}})
				w.others(m{"spec": m{"x": "b"}})
				time.Sleep(time.Second)
			}
			time.Sleep(window)
		}
		if w.begins > 0 || w.delay > 0 {
			t.Errorf("contention began %d times", w.begins)
		}
	})
}

// A write that undoes nothing does not begin contention, even if one more that does would.
func TestOnlyAnOverwriteBeginsContention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for range threshold {
			w.write(m{"spec": m{"x": "a"}})
			w.others(m{"spec": m{"x": "b"}})
		}
		if w.write(m{"status": m{"y": "a"}}); w.finding.begins || w.delay > 0 {
			t.Errorf("contention begins with a write of another field, for %v", w.finding.fields)
		}
		if w.write(m{"spec": m{"x": "a"}}); !w.finding.begins {
			t.Error("contention does not begin")
		}
	})
}

// The last write counts, and not the first one.
func TestWhatWasWrittenWithinTheWindowIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.write(m{"spec": m{"x": "a"}})
		time.Sleep(window - time.Second)
		w.write(m{"spec": m{"x": "b"}})
		time.Sleep(2 * time.Second)
		w.others(m{"spec": m{"x": "c"}})
		if w.write(m{"spec": m{"x": "b"}}); len(w.finding.fields) != 1 {
			t.Errorf("got %v", w.finding.fields)
		}
	})
}

// One timer is enough for all objects, and there is none without objects.
func TestForgettingIsPlannedWhileThereAreObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for range 2 {
			if w.detector.cleanupDue {
				t.Error("it is planned without objects")
			}
			w.write(m{"spec": m{"x": "a"}})
			time.Sleep(window - time.Second)
			w.write(m{"spec": m{"x": "b"}})
			time.Sleep(2 * time.Second)
			if !w.detector.cleanupDue {
				t.Error("it is not planned, although the last write counts")
			}
			time.Sleep(2 * window)
		}
	})
}

// Many fields are a problem of memory, so they are forgotten.
func TestTheFieldsOfAnObjectAreLimited(t *testing.T) {
	for count, want := range map[int]int{maxFields: 1, maxFields + 1: 0} {
		synctest.Test(t, func(t *testing.T) {
			w, fields := newWorld(), m{}
			for i := range count {
				fields[fmt.Sprint(i)] = "a"
			}
			w.write(m{"spec": fields})
			w.write(m{"status": m{"x": "a"}})
			w.others(m{"spec": m{"0": "b"}})
			if w.write(m{"spec": fields}); len(w.finding.fields) != want {
				t.Errorf("%d fields: got %v", count, w.finding.fields)
			}
		})
	}
}

func TestOverwrittenFieldsAreSorted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, ours, theirs := newWorld(), m{}, m{}
		for i := range maxFields {
			ours[fmt.Sprint(i)], theirs[fmt.Sprint(i)] = "a", "b"
		}
		w.write(m{"spec": ours})
		w.others(m{"spec": theirs})
		w.write(m{"spec": ours})
		if fields := w.finding.fields; len(fields) != maxFields || !slices.IsSortedFunc(fields, slices.Compare) {
			t.Errorf("got %s", fields)
		}
	})
}

func TestContentionSlowsDownAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for range threshold + 1 {
			w.write(m{"spec": m{"x": "a"}})
			w.others(m{"spec": m{"x": "b"}})
		}
		for i, want := range []time.Duration{2 * time.Second, 4 * time.Second, 4 * time.Second} {
			w.write(m{"spec": m{"x": "a"}})
			if w.delay != want || w.detector.delay(one) != want || w.detector.delay(identity{uid: "u-2"}) != 0 {
				t.Errorf("%d. got %v and %v, want %v", i, w.delay, w.detector.delay(one), want)
			}
			w.others(m{"spec": m{"x": "b"}})
			time.Sleep(w.delay)
		}
		if w.begins != 1 || w.detector.delay(one) != 0 {
			t.Errorf("contention began %d times, with a delay of %v", w.begins, w.detector.delay(one))
		}
		w.write(m{"spec": m{"x": "a"}})
		time.Sleep(window + 2*w.delay + time.Second)
		w.others(m{"spec": m{"x": "b"}})
		if w.write(m{"spec": m{"x": "a"}}); w.delay != 0 {
			t.Errorf("contention has ended, but there is a delay of %v", w.delay)
		}
	})
}

func TestNothingIsKeptAboutObjectsAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for range 2 * threshold {
			w.write(m{"spec": m{"x": "a"}})
			w.others(m{"spec": m{"x": "b"}})
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(w.detector.objects) != 0 {
			t.Errorf("left: %v", w.detector.objects)
		}
	})
}

// Objects are forgotten as soon as the window of their last write is over.
func TestAnObjectIsForgottenAfterTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.write(m{"spec": m{"x": "a"}})
		time.Sleep(window)
		synctest.Wait()
		if len(w.detector.objects) != 0 {
			t.Errorf("left: %v", w.detector.objects)
		}
	})
}

func TestDroppedFieldsAreNotOverwritten(t *testing.T) {
	detector, merge := newDetector(delays()), m{"spec": m{"unknown": "a"}}
	for range 2 * threshold {
		finding := detector.check(one, m{}, merge)
		if delay := detector.recordWrite(one, merge, func(object.Path, any) bool { return false }, finding); delay > 0 || finding.begins {
			t.Fatalf("got %v, %v", delay, finding)
		}
	}
}

func TestDetectionCanBeDisabled(t *testing.T) {
	w := newWorld()
	w.detector = newDetector(nil)
	for range 3 * threshold {
		w.write(m{"spec": m{"x": "a"}})
		w.others(m{"spec": m{"x": "b"}})
	}
	if w.begins > 0 || w.delay > 0 || len(w.detector.objects) > 0 {
		t.Errorf("got %+v", w)
	}
}

// An object counts as long as others undo what the operator writes.
func TestContendedObjectsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		expect := func(when string, want int) {
			t.Helper()
			if got := w.detector.counts()[one.Resource]; got != want {
				t.Errorf("%s: got %d", when, got)
			}
		}
		for range threshold {
			w.write(m{"spec": m{"x": "a"}})
			expect("at first", 0)
			w.others(m{"spec": m{"x": "b"}})
		}
		w.write(m{"spec": m{"x": "a"}})
		expect("under contention", 1)
		time.Sleep(window + time.Second)
		expect("in the pause, and as long again", 1)
		time.Sleep(time.Minute)
		expect("afterward", 0)
	})
}
