package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// scenario is what a seed does.
type scenario struct {
	phases []phase
}

// phase is the life of one process, and what happens to the objects in it.
type phase struct {
	party int
	// away happens before the process starts, while there is no operator.
	away []action
	// live happens in the life of the process.
	live []action
	end  ending
}

// action is what a user does to an object.
type action struct {
	after  time.Duration // since the process is ready
	verb   verb
	object string
	spec   map[string]any
	// missed is how many runs of the schedule an object has missed when it is created, according to the record
	// of its last run; 0: it has no record.
	missed int
}

type verb string

const (
	create verb = "creates"
	update verb = "updates"
	remove verb = "deletes"
)

// ending is how the life of a process ends. The last process has none: it finishes the work.
type ending struct {
	kill bool // or else stop
	// The end is triggered by an entry of the history, which is the n-th of its kind, or after
	// some time, whichever is first.
	on    trigger
	n     int
	after time.Duration
}

type trigger string

const (
	onTime  trigger = "time"
	onStart trigger = "start" // of a call
	onEnd   trigger = "end"   // of a call, before its outcome is stored
	onWrite trigger = "write" // of a record
)

func (e ending) String() string {
	how := "stopped"
	if e.kill {
		how = "killed"
	}
	if e.on == onTime {
		return fmt.Sprintf("%s after %s", how, e.after)
	}
	return fmt.Sprintf("%s at %s %d, or after %s", how, e.on, e.n, e.after)
}

// handlerIDs are the ids of the handlers in operator/main.go and in handlers.py. The sub-handlers of
// an object are those of its items.
var handlerIDs = []string{
	"create_one", "create_two", "update", "both", "field/spec.a", "parent", "parent/x", "parent/y", "parent/z", "resumed", "delete_one", "delete_two",
	"first", "second", "rescue", "again",
}

// Handlers with an order are skipped if their turn never comes: they follow the success of one handler, or a failure of
// one of several. Only a build of this library that knows the order keeps it.
var (
	follows        = map[string]string{"second": "first", "again": "rescue"}
	followsFailure = map[string][]string{"rescue": {"first", "second"}}
)

// newScenario makes the scenario of a seed.
func newScenario(seed uint64) scenario {
	dice := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // not for secrets
	s := scenario{phases: make([]phase, 4+dice.IntN(4))}
	for i := range s.phases {
		s.phases[i].party = int(seed+uint64(i)) % 2 //nolint:gosec // small
		s.phases[i].end = newEnding(dice)
	}
	for n := range 4 + dice.IntN(5) {
		s.addObject(dice, fmt.Sprintf("object-%d", n))
	}
	return s
}

func newEnding(dice *rand.Rand) ending {
	e := ending{
		kill: dice.IntN(3) > 0, on: []trigger{onTime, onStart, onEnd, onEnd, onWrite}[dice.IntN(5)],
		n: 1 + dice.IntN(12), after: milliseconds(dice, 300, 2500),
	}
	return e
}

// addObject adds the life of an object: it is created, changed a few times, and perhaps deleted.
func (s *scenario) addObject(dice *rand.Rand, name string) {
	items := []string{"x", "y", "z"}[:dice.IntN(4)]
	last := len(s.phases) - 1
	at := dice.IntN(max(1, last))
	changed := 1
	for step := range 1 + dice.IntN(6) {
		step++
		if step > 1 && dice.IntN(2) == 0 {
			changed = step
		}
		change := action{verb: update, object: name, spec: map[string]any{"step": step, "a": changed, "items": items, "plan": plans(dice)}}
		if step == 1 {
			change.verb = create
			change.missed = dice.IntN(4) * dice.IntN(4)
		}
		s.add(dice, at, change)
		at = min(last, at+[]int{0, 1, 1, 2}[dice.IntN(4)])
	}
	if dice.IntN(2) == 0 {
		s.add(dice, at, action{verb: remove, object: name})
	}
}

// add adds an action to a phase, after those that it has for the object already.
func (s *scenario) add(dice *rand.Rand, at int, a action) {
	p := &s.phases[at]
	earliest, live := time.Duration(0), false
	for _, other := range p.live {
		if other.object == a.object {
			earliest, live = other.after, true
		}
	}
	if !live && dice.IntN(4) == 0 {
		p.away = append(p.away, a)
		return
	}
	a.after = earliest + milliseconds(dice, 0, 1000)
	p.live = append(p.live, a)
}

// handlerPlan is what the object says about a handler: plan in operator/main.go.
type handlerPlan struct {
	Takes  int    `json:"takes"`
	Fails  int    `json:"fails"`
	With   string `json:"with"`
	Delay  int    `json:"delay"`
	Result bool   `json:"result"`
}

func plans(dice *rand.Rand) map[string]any {
	all := map[string]any{}
	for _, id := range append(slices.Clip(handlerIDs), "backup") {
		p := handlerPlan{Takes: dice.IntN(4) * dice.IntN(80), Delay: 100 + dice.IntN(900), With: "temporary", Result: id != "resumed"}
		if dice.IntN(3) == 0 {
			p.With = "error"
		}
		if dice.IntN(5) < 2 {
			p.Fails = 1 + dice.IntN(3)
		}
		often := 30
		if id == "first" || id == "second" {
			often = 3
		}
		if dice.IntN(often) == 0 && id != "parent" { // it would end its sub-handlers, too
			p.Fails, p.With = 5, "permanent"
		}
		text, err := json.Marshal(p)
		if err != nil {
			panic(err) // it has only numbers and texts
		}
		all[id] = string(text)
	}
	return all
}

func milliseconds(dice *rand.Rand, from, to int) time.Duration {
	return time.Duration(from+dice.IntN(to-from)) * time.Millisecond
}
