package contention

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
)

type m = map[string]any

func delays() []time.Duration { return []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} }

// thing is an object with an operator that writes to it.
type thing struct {
	table  *Detector[string]
	body   m
	found  Finding       // of the last write
	pause  time.Duration // after it
	begins int
}

func newThing() *thing { return &thing{table: New[string](delays()), body: m{}} }

// write is one of the operator's own.
func (o *thing) write(wanted m) {
	merge := patch.Minimal(o.body, wanted)
	if merge == nil {
		return
	}
	o.found = o.table.Check("one", o.body, merge)
	if o.found.Begins {
		o.begins++
	}
	o.body = patch.ApplyMerge(o.body, merge)
	o.pause = o.table.RecordWrite("one", merge, func(object.Path, any) bool { return true }, o.found)
}

// others write, too.
func (o *thing) others(wanted m) { o.body = patch.ApplyMerge(o.body, wanted) }

func TestWhatIsADispute(t *testing.T) {
	spec := func(x any) m { return m{"spec": m{"x": x}} }
	list := func(x ...any) m { return m{"status": m{"conditions": x}} }
	record := func(text string) m { return m{"metadata": m{"annotations": m{"kopf.zalando.org/a": text}}} }
	tests := map[string]struct {
		ours, theirs func(i int) m
		pause        time.Duration // between the two, and the two
		want         bool
	}{
		"each restores what it wants": {func(int) m { return spec("a") }, func(int) m { return spec("b") }, 0, true},
		"the others want something else each time": {
			func(int) m { return spec("a") }, func(i int) m { return spec(i) }, 0, true,
		},
		"we want something else each time":     {func(i int) m { return spec(i) }, func(int) m { return spec("b") }, 0, true},
		"they add what we remove":              {func(int) m { return spec(nil) }, func(int) m { return spec("b") }, 0, true},
		"they remove what we add":              {func(int) m { return spec("a") }, func(int) m { return spec(nil) }, 0, true},
		"slowly, but without a rest":           {func(int) m { return spec("a") }, func(int) m { return spec("b") }, 4 * time.Second, true},
		"the same list":                        {func(int) m { return list("a") }, func(int) m { return list("b") }, 0, true},
		"records in one place":                 {func(i int) m { return record("ours") }, func(int) m { return record("theirs") }, 0, true},
		"a tool that applies every minute":     {func(int) m { return spec("a") }, func(int) m { return spec("b") }, 30 * time.Second, false},
		"nobody else writes":                   {func(i int) m { return spec(i % 2) }, func(int) m { return nil }, 0, false},
		"others write elsewhere":               {func(i int) m { return spec(i % 2) }, func(i int) m { return m{"status": m{"x": i}} }, 0, false},
		"others write to the same mapping":     {func(i int) m { return spec(i % 2) }, func(i int) m { return m{"spec": m{"y": i}} }, 0, false},
		"we do not mind":                       {func(int) m { return nil }, func(i int) m { return spec(i) }, 0, false},
		"others go on where we do":             {func(i int) m { return list(i) }, func(i int) m { return list(i, "other") }, 0, false},
		"others take back what we never wrote": {func(i int) m { return m{"status": m{"x": i}} }, func(i int) m { return spec(i % 2) }, 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newThing()
				for i := range 3 * Threshold {
					o.write(test.ours(i))
					time.Sleep(test.pause)
					o.others(test.theirs(i))
					time.Sleep(test.pause)
				}
				if got := o.begins == 1 && o.pause == 4*time.Second; got != test.want || o.begins > 1 {
					t.Errorf("%d disputes, the last pause was %v, for %v", o.begins, o.pause, o.found.Fields)
				}
			})
		})
	}
}

// A person who is quick, and stubborn, is no operator.
func TestAPersonMayInsist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newThing()
		for range 5 {
			for range Threshold - 1 {
				o.write(m{"spec": m{"x": "a"}})
				o.others(m{"spec": m{"x": "b"}})
				time.Sleep(time.Second)
			}
			time.Sleep(Window)
		}
		if o.begins > 0 || o.pause > 0 {
			t.Errorf("got %d disputes", o.begins)
		}
	})
}

func TestADisputeSlowsDownAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newThing()
		for range Threshold + 1 {
			o.write(m{"spec": m{"x": "a"}})
			o.others(m{"spec": m{"x": "b"}})
		}
		for i, want := range []time.Duration{2 * time.Second, 4 * time.Second, 4 * time.Second} {
			o.write(m{"spec": m{"x": "a"}})
			if o.pause != want || o.table.Delay("one") != want || o.table.Delay("another") != 0 {
				t.Errorf("%d. got %v and %v, want %v", i, o.pause, o.table.Delay("one"), want)
			}
			o.others(m{"spec": m{"x": "b"}})
			time.Sleep(o.pause)
		}
		if o.begins != 1 || o.table.Delay("one") != 0 {
			t.Errorf("got %d disputes, a pause of %v", o.begins, o.table.Delay("one"))
		}
		o.write(m{"spec": m{"x": "a"}})
		time.Sleep(Window + 2*o.pause + time.Second)
		o.others(m{"spec": m{"x": "b"}})
		if o.write(m{"spec": m{"x": "a"}}); o.pause != 0 {
			t.Errorf("it was over, and there is a pause of %v", o.pause)
		}
	})
}

func TestNothingIsKeptOfObjectsAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newThing()
		for range 2 * Threshold {
			o.write(m{"spec": m{"x": "a"}})
			o.others(m{"spec": m{"x": "b"}})
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(o.table.objects) != 0 || o.table.cleanupDue {
			t.Errorf("left: %v", o.table.objects)
		}
	})
}

func TestWhatTheServerDoesNotTakeIsNotUndone(t *testing.T) {
	table, merge := New[string](delays()), m{"spec": m{"unknown": "a"}}
	for range 2 * Threshold {
		found := table.Check("one", m{}, merge)
		if pause := table.RecordWrite("one", merge, func(object.Path, any) bool { return false }, found); pause > 0 || found.Begins {
			t.Fatalf("got %v, %v", pause, found)
		}
	}
}

func TestTheGuardCanBeDisabled(t *testing.T) {
	o := newThing()
	o.table = New[string](nil)
	for range 3 * Threshold {
		o.write(m{"spec": m{"x": "a"}})
		o.others(m{"spec": m{"x": "b"}})
	}
	if o.begins > 0 || o.pause > 0 || len(o.table.objects) > 0 {
		t.Errorf("got %+v", o)
	}
}
