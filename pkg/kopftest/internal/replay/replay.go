// Package replay repeats the decisions in a recording with other handlers.
package replay

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/reconcile/recording"
	"github.com/kopf-go/kopf/pkg/storage"
)

// Difference is a decision that another version of the handlers makes in another way.
type Difference struct {
	Line    int
	At      string
	Handler string // empty if the reason or the change is different
	Text    string
}

// String describes the difference.
func (d Difference) String() string { return fmt.Sprintf("line %d, at %s: %s", d.Line, d.At, d.Text) }

// Replay repeats a recording.
type Replay struct {
	Handlers registry.Handlers
	DiffBase storage.DiffBase
	Progress storage.Progress
	// Later is called between two evaluations of every filter; it makes time pass.
	Later func()

	// Decisions is the number of decisions, and Outcomes that of the attempts, whose results
	// the states of the objects contain.
	Decisions, Outcomes int
	Differences         []Difference
	// Unsure are the handlers whose filters cannot be repeated, with the reason.
	Unsure map[string]string

	resources map[string]recording.Decider
	line      int
	lines     []recorded
}

// recorded is a decision with its line.
type recorded struct {
	line     int
	at       string
	resource string
	raw      map[string]any
	pass     *recording.Pass
	event    *recording.Event
	unsure   []string
	made     recording.Decision
	again    recording.Decision
	err      error
}

// Run reads and repeats a recording.
func (r *Replay) Run(from io.Reader) error {
	r.Unsure = map[string]string{}
	r.resources = map[string]recording.Decider{}
	if err := r.read(from); err != nil {
		return err
	}
	for i := range r.lines {
		r.lines[i].again, r.lines[i].err = r.decide(&r.lines[i])
	}
	r.Later()
	for i := range r.lines {
		a := r.lines[i].again
		b, _ := r.decide(&r.lines[i]) // fails as before
		for _, id := range slices.Concat(recording.Differing(a.Due, b.Due), recording.Differing(a.Background, b.Background), recording.Differing(a.Children, b.Children)) {
			r.Unsure[id] = "its filter depends on the time, or on what else is not recorded"
		}
	}
	for i := range r.lines {
		r.compare(&r.lines[i])
	}
	return nil
}

// read collects the decisions.
func (r *Replay) read(from io.Reader) error {
	lines := bufio.NewReader(from)
	for {
		text, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(bytes.TrimSpace(text)) == 0 {
			if r.line == 0 {
				return errors.New("the recording is empty")
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("line %d is incomplete: %w", r.line+1, err)
		}
		r.line++
		var entry recording.Entry
		if err := json.Unmarshal(text, &entry); err != nil {
			return fmt.Errorf("line %d: %w", r.line, err)
		}
		if err := r.add(entry); err != nil {
			return fmt.Errorf("line %d: %w", r.line, err)
		}
	}
}

// add adds one line.
func (r *Replay) add(e recording.Entry) error {
	if (r.line == 1) != (e.Start != nil) {
		return errors.New("it is not a recording of an operator")
	}
	one := recorded{line: r.line, at: e.At, pass: e.Pass, event: e.Event}
	switch {
	case e.Start != nil:
		return r.begin(*e.Start)
	case e.Resource != nil:
		r.resources[e.Resource.String()] = recording.Decider{
			Resource: *e.Resource, Handlers: recording.ForResource(r.Handlers, *e.Resource), DiffBase: r.DiffBase, Progress: r.Progress,
		}
		return nil
	case e.Outcome != nil:
		r.Outcomes++
		return nil
	case e.Pass != nil:
		one.resource = e.Pass.Resource
		one.raw = e.Pass.Object
		one.made = e.Pass.Decision
		one.unsure = e.Pass.Unsure
		one.pass.Facts.Old = integers(one.pass.Facts.Old)
	case e.Event != nil:
		one.resource = e.Event.Resource
		one.raw = e.Event.Object
		one.made = e.Event.Decision
		one.unsure = e.Event.Unsure
	default:
		return nil
	}
	if _, known := r.resources[one.resource]; !known {
		return fmt.Errorf("the resource %s is not described", one.resource)
	}
	one.raw = integers(one.raw)
	for _, id := range one.unsure {
		if id != recording.Everything {
			r.Unsure[id] = "its filter calculates with values, of which the recording has only hashes; see Settings.Recording.Fields"
		}
	}
	r.lines = append(r.lines, one)
	return nil
}

// begin checks the format, and which constants of filters were unknown to the operator.
func (r *Replay) begin(s recording.Start) error {
	if s.Format != recording.Format {
		return fmt.Errorf("the format %d is unknown: use the version of the kit that fits the operator", s.Format)
	}
	known := map[any]bool{}
	for _, value := range s.Constants {
		known[number(value)] = true
	}
	for _, d := range r.Handlers {
		for _, value := range recording.ConstantsOf(registry.Handlers{d}) {
			if !known[number(value)] {
				r.Unsure[d.ID] = fmt.Sprintf("its filter compares with %v, which the recorded handlers did not, so that the recording has only a hash of it", value)
			}
		}
	}
	return nil
}

// number makes numbers comparable after JSON.
func number(value any) any {
	if integer, ok := value.(int64); ok {
		return float64(integer)
	}
	return value
}

// integers returns an object as Kubernetes decodes it: with int64 for integers.
func integers(raw map[string]any) map[string]any {
	if raw == nil {
		return nil
	}
	text, err := json.Marshal(raw)
	if err != nil {
		return raw
	}
	var made map[string]any
	if err := utiljson.Unmarshal(text, &made); err != nil {
		return raw
	}
	return made
}

// decide repeats a decision.
func (r *Replay) decide(one *recorded) (recording.Decision, error) {
	decider := r.resources[one.resource]
	isAsked := false
	decider.AskedMemo = func() { isAsked = true }
	var made recording.Decision
	var err error
	if one.pass != nil {
		made, err = decider.Pass(one.raw, one.pass.Facts)
	} else {
		made, err = decider.Event(one.raw, one.event.Type)
	}
	if !isAsked {
		return made, err
	}
	for _, d := range decider.Handlers { // a function of one of them has asked
		if len(d.Predicates) > 0 {
			r.Unsure[d.ID] = "its filter, or another one of the resource, reads a memo"
		}
	}
	return made, err
}

// compare adds the differences of one decision.
func (r *Replay) compare(one *recorded) {
	r.Decisions++
	if slices.Contains(one.unsure, recording.Everything) {
		return
	}
	object := r.resources[one.resource].Resource.Kind + " " + nameIn(one.raw)
	note := func(id, format string, arguments ...any) {
		if r.readsIndex(id) {
			r.Unsure[id] = "its filter may read an index, and a replay has none"
		}
		if _, isUnsure := r.Unsure[id]; !isUnsure {
			r.Differences = append(r.Differences, Difference{one.line, one.at, r.reported(id), object + ": " + fmt.Sprintf(format, arguments...)})
		}
	}
	if one.err != nil {
		note("", "a filter fails: %v", one.err)
		return
	}
	if one.made.Reason != one.again.Reason || !reflect.DeepEqual(one.made.Diff, one.again.Diff) {
		note("", "the reason is %s with the change [%s]; it was %s with [%s]", one.again.Reason, strings.Join(one.again.Diff, ", "), one.made.Reason, strings.Join(one.made.Diff, ", "))
	}
	r.compareLists(one, note, one.made.Due, one.again.Due, "called")
	r.compareLists(one, note, one.made.Background, one.again.Background, "running")
	r.compareLists(one, note, one.made.Children, one.again.Children, "following children")
}

func (r *Replay) compareLists(one *recorded, note func(id, format string, arguments ...any), before, after []string, what string) {
	because := one.made.Reason
	if one.event != nil {
		because = "event " + one.event.Type
	}
	for _, id := range recording.Differing(before, after) {
		var facts recording.Facts
		if one.pass != nil {
			facts = one.pass.Facts
		}
		if slices.Contains(before, id) {
			why := r.resources[one.resource].Explain(one.raw, facts, id)
			note(id, "%s was %s for the %s, and is not now: %s", r.reported(id), what, strings.TrimSpace(because), why)
		} else {
			note(id, "%s was not %s for the %s, and is now", r.reported(id), what, strings.TrimSpace(because))
		}
	}
}

// nameIn returns the hashes of the namespace and the name of an object.
func nameIn(raw map[string]any) string {
	metadata, _ := raw["metadata"].(map[string]any)
	return strings.TrimPrefix(fmt.Sprintf("%v/%v", orEmpty(metadata["namespace"]), orEmpty(metadata["name"])), "/")
}

func orEmpty(value any) any {
	if value == nil {
		return ""
	}
	return value
}

// reported returns the id under which users know the handler.
func (r *Replay) reported(id string) string {
	for _, d := range r.Handlers {
		if d.ID == id {
			return handler.ReportedID(d)
		}
	}
	return id
}

// readsIndex reports whether a function that is a filter of the handler can read an index.
func (r *Replay) readsIndex(id string) bool {
	hasIndex := slices.ContainsFunc(r.Handlers, func(d *handler.Declaration) bool { return d.Kind == handler.OnIndex })
	return hasIndex && slices.ContainsFunc(r.Handlers, func(d *handler.Declaration) bool { return d.ID == id && len(d.Predicates) > 0 })
}
