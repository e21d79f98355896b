package call

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// calls makes calls that need slots, and records the objects that are woken.
type calls struct {
	t *testing.T
	*Slots
	woken   []string
	running map[string]*Running
}

func newCalls(t *testing.T, total int) *calls {
	c := &calls{t: t, running: map[string]*Running{}}
	c.Slots = NewSlots(total, func(key object.Key) { c.woken = append(c.woken, key.Name) })
	return c
}

func keyOf(name string) object.Key {
	resource, _, _ := strings.Cut(name, "-")
	return object.Key{Resource: resource, NamespacedName: types.NamespacedName{Name: name}}
}

// limited is the call of a handler with a limit for an object, whose name begins with its
// resource.
func limited(name string, limit int) Claim {
	return Claim{Key: keyOf(name), ID: "fn", Pool: "fn", Limit: limit}
}

func unlimited(name string) Claim { return Claim{Key: keyOf(name), ID: "fn"} }

// take expects that the calls begin.
func (c *calls) take(wanted ...Claim) {
	c.t.Helper()
	for _, call := range wanted {
		r := c.Take(call)
		if r == nil {
			c.t.Fatalf("%s has no slot", call.Key.Name)
		}
		c.running[call.Key.Name] = r
	}
}

// refuse expects that the calls must wait. Their passes end.
func (c *calls) refuse(wanted ...Claim) {
	c.t.Helper()
	for _, call := range wanted {
		if c.LineUp(call) || c.Take(call) != nil {
			c.t.Fatalf("%s has a slot", call.Key.Name)
		}
		c.EndPass(call.Key, due)
	}
}

// end ends calls.
func (c *calls) end(names ...string) {
	for _, name := range names {
		c.Return(c.running[name])
	}
}

func (c *calls) expectWoken(names ...string) {
	c.t.Helper()
	if !slices.Equal(c.woken, names) {
		c.t.Errorf("woken: %v, want %v", c.woken, names)
	}
	c.woken = nil
}

// expectIdle expects that nothing is kept.
func (c *calls) expectIdle() {
	c.t.Helper()
	if c.used.total+len(c.used.byResource)+len(c.used.byPool)+len(c.tickets)+len(c.lines)+c.waiting+c.Slots.running.Len() != 0 {
		c.t.Errorf("%+v is left, and %d tickets, %d lines, %d waiting", c.used, len(c.tickets), len(c.lines), c.waiting)
	}
}

func due(string) bool { return true }

func notDue(string) bool { return false }

func TestSlotsAreHandedOutInOrder(t *testing.T) {
	c := newCalls(t, 100)
	c.take(limited("a-1", 2), limited("a-2", 2))
	c.refuse(limited("a-3", 2), limited("a-4", 2), limited("a-5", 2))
	c.refuse(limited("a-4", 2)) // keeps its place
	if got := c.Usage(); got.Running != 2 || got.Waiting != 3 {
		t.Errorf("got %+v", got)
	}
	c.end("a-1")
	c.expectWoken("a-3")
	c.refuse(limited("a-4", 2), limited("a-6", 2)) // the slot is reserved
	c.take(limited("a-3", 2))
	c.end("a-2", "a-3")
	c.expectWoken("a-4", "a-5")
	c.take(limited("a-5", 2), limited("a-4", 2))
	c.end("a-4", "a-5")
	c.expectWoken("a-6")
	c.take(limited("a-6", 2))
	c.end("a-6")
	c.expectWoken()
	c.expectIdle()
}

func TestReservedSlotsArePassedOn(t *testing.T) {
	tests := map[string]func(c *calls){
		"the handler is not due anymore": func(c *calls) { c.EndPass(keyOf("a-2"), notDue) },
		"the pass could not call it":     func(c *calls) { c.EndPass(keyOf("a-2"), due) },
	}
	for name, pass := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCalls(t, 100)
			c.take(limited("a-1", 1))
			c.refuse(limited("a-2", 1), limited("a-3", 1))
			c.end("a-1")
			c.expectWoken("a-2")
			pass(c)
			c.expectWoken("a-3")
			c.take(limited("a-3", 1))
			c.end("a-3")
			c.EndPass(keyOf("a-2"), notDue)
			c.expectIdle()
		})
	}
}

func TestTicketKeepsItsPlace(t *testing.T) {
	c := newCalls(t, 100)
	c.take(limited("a-1", 1))
	c.refuse(limited("a-2", 1), limited("a-3", 1), limited("a-4", 1))
	c.end("a-1")
	c.EndPass(keyOf("a-2"), due) // it waits for its watch, say
	c.expectWoken("a-2", "a-3")
	c.refuse(limited("a-2", 1))
	c.take(limited("a-3", 1))
	c.end("a-3")
	c.expectWoken("a-2")
}

// The slot was reserved after the pass had asked for it: the next pass uses it.
func TestSlotThatIsReservedDuringAPassIsKept(t *testing.T) {
	c := newCalls(t, 100)
	c.take(limited("a-1", 1))
	if c.LineUp(limited("a-2", 1)) {
		t.Error("there is a slot")
	}
	c.end("a-1")
	c.EndPass(keyOf("a-2"), due)
	c.expectWoken("a-2")
	c.refuse(limited("a-3", 1))
	c.take(limited("a-2", 1))
}

func TestResourcesShareTheSlotsOfTheOperator(t *testing.T) {
	c := newCalls(t, 10)
	for i := range 8 {
		c.take(unlimited(fmt.Sprint("a-", i)))
	}
	c.refuse(unlimited("a-8"), unlimited("a-9"), unlimited("a-10")) // 80 %
	c.take(unlimited("b-0"), unlimited("c-0"))
	c.refuse(unlimited("b-1"), unlimited("b-2"), unlimited("c-1"))
	c.end("a-0", "a-1", "a-2", "a-3", "a-4")
	c.expectWoken("a-8", "b-1", "c-1", "a-9", "b-2")
}

// A nested call has the slot of the operator already, so it needs only its own.
func TestNestedCallsNeedNoSlotOfTheOperator(t *testing.T) {
	c := newCalls(t, 1)
	nested := func(name string) Claim { call := limited(name, 1); call.ID = "fn/sub"; call.Nested = true; return call }
	c.take(unlimited("a-1"))
	c.refuse(unlimited("a-2"))
	c.take(nested("a-1"))
	c.refuse(nested("a-2"))
	c.end("a-1")
	c.expectWoken("a-2")
	if !c.HasReserved(keyOf("a-2"), "fn/sub") || !c.Waits(keyOf("a-2"), "fn") {
		t.Error("the sub-handler has no slot")
	}
}

func TestClearDiscardsTickets(t *testing.T) {
	c := newCalls(t, 100)
	c.take(limited("a-1", 1))
	c.refuse(limited("a-2", 1), limited("a-3", 1))
	c.end("a-1")
	c.Clear()
	c.expectWoken("a-2")
	c.expectIdle()
}

func TestOccupiedTellsOfTheFirstCall(t *testing.T) {
	c := newCalls(t, 100)
	if len(c.Occupied) != 0 {
		t.Error("no call has begun")
	}
	c.take(unlimited("a-1"))
	<-c.Occupied
	c.take(unlimited("a-2"))
	if len(c.Occupied) != 0 {
		t.Error("another call was running")
	}
	c.end("a-1")
	c.end("a-2")
	c.take(unlimited("a-3"))
	if len(c.Occupied) != 1 {
		t.Error("the first call after a rest is not told")
	}
}

func TestLongestCallIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCalls(t, 100)
		c.take(unlimited("a-1"))
		time.Sleep(time.Minute)
		c.take(unlimited("a-2"))
		time.Sleep(time.Minute)
		if got := c.Usage(); got != (Usage{Running: 2, Longest: 2 * time.Minute}) {
			t.Errorf("got %+v", got)
		}
		for _, want := range []int{1, 0} { // once
			if got := c.Overdue(90 * time.Second); len(got) != want || want > 0 && got[0].Key.Name != "a-1" {
				t.Errorf("got %v", got)
			}
		}
		c.end("a-1")
		if got := c.Usage(); got != (Usage{Running: 1, Longest: time.Minute}) {
			t.Errorf("got %+v", got)
		}
	})
}

// A sub-handler can be registered in two branches, each with its own limit.
func TestHandlerThatWaitsForAnotherLimitReturnsItsSlot(t *testing.T) {
	first := func(name string) Claim {
		return Claim{Key: keyOf(name), ID: "fn/sub", Pool: "line 1", Limit: 1, Nested: true}
	}
	second := func(name string) Claim {
		return Claim{Key: keyOf(name), ID: "fn/sub", Pool: "line 2", Limit: 1, Nested: true}
	}
	tests := map[string]func(c *calls){
		"while it waits": func(c *calls) {
			c.refuse(first("a-2"))
			c.take(second("a-2"))
			c.end("a-2", "a-1")
			c.expectWoken()
		},
		"after a slot was reserved": func(c *calls) {
			c.refuse(first("a-2"), first("a-3"))
			c.end("a-1")
			c.expectWoken("a-2")
			c.take(second("a-2"))
			c.expectWoken("a-3")
			c.take(first("a-3"))
			c.end("a-2", "a-3")
		},
		"to wait for the other one": func(c *calls) {
			c.take(second("a-4"))
			c.refuse(first("a-2"))
			c.end("a-1")
			c.expectWoken("a-2")
			c.refuse(second("a-2"))
			c.end("a-4")
			c.expectWoken("a-2")
			c.take(second("a-2"))
			c.end("a-2")
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCalls(t, 100)
			c.take(first("a-1"))
			test(c)
			c.take(first("a-9"))
			c.end("a-9")
			c.expectIdle()
		})
	}
}
