package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/storage"
)

// What operators store, as pkg/storage/formats.md says.
const (
	prefix    = "kopf.zalando.org/"
	baseName  = "last-handled-configuration"
	cycleName = baseName + "-started"
	touchName = "touch-dummy"     // Kopf writes it to wake itself up
	runName   = "backup.schedule" // the last run of the timer, which Kopf does not know
	finalizer = prefix + "KopfFinalizerMarker"
)

// version is what one version of an object has.
type version struct {
	number   uint64 // the resource version
	uid      string
	step, a  int64
	base     *int64                     // the step of the base
	records  map[string]*storage.Record // by the names of the annotations
	cycle    *openCycle                 // nil: there is none
	run      *storage.Record            // the last one of the schedule; nil: there was none
	held     bool                       // by the finalizer
	deleting bool
	gone     bool
	status   map[string]any
	broken   []string // what cannot be read
}

// openCycle has the states at which handlers of a cycle have ended.
type openCycle struct {
	Cycle  string
	First  essence
	States []essence
	At     map[string]int
}

// essence is a state of the object.
type essence struct{ Spec struct{ Step *int64 } }

func (c *openCycle) String() string {
	text := fmt.Sprintf("open cycle %s: first %s, then", c.Cycle, number(c.First.Spec.Step))
	for _, state := range c.States {
		text += " " + number(state.Spec.Step)
	}
	for _, id := range slices.Sorted(maps.Keys(c.At)) {
		text += fmt.Sprintf(", %s at %d", id, c.At[id])
	}
	return text
}

// newVersion reads a version of an object.
func newVersion(obj *unstructured.Unstructured) *version {
	v := &version{
		uid: string(obj.GetUID()), records: map[string]*storage.Record{}, held: slices.Contains(obj.GetFinalizers(), finalizer),
		deleting: obj.GetDeletionTimestamp() != nil,
	}
	var err error
	if v.number, err = strconv.ParseUint(obj.GetResourceVersion(), 10, 64); err != nil {
		v.broken = append(v.broken, err.Error())
	}
	v.step, _, _ = unstructured.NestedInt64(obj.Object, "spec", "step")
	v.a, _, _ = unstructured.NestedInt64(obj.Object, "spec", "a")
	v.status, _, _ = unstructured.NestedMap(obj.Object, "status")
	annotations := obj.GetAnnotations()
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		name, ok := strings.CutPrefix(key, prefix)
		if !ok {
			continue
		}
		if err := v.read(name, annotations[key]); err != nil {
			v.broken = append(v.broken, fmt.Sprintf("%s: %v", key, err))
		}
	}
	return v
}

// read reads an annotation of an operator.
func (v *version) read(name, text string) error {
	switch name {
	case baseName:
		base := essence{}
		err := json.Unmarshal([]byte(text), &base)
		v.base = base.Spec.Step
		if err == nil && v.base == nil {
			err = fmt.Errorf("there is no step in %s", text)
		}
		return err
	case cycleName:
		v.cycle = &openCycle{}
		return json.Unmarshal([]byte(text), v.cycle)
	case touchName:
		return nil
	}
	record := &storage.Record{}
	if err := json.Unmarshal([]byte(text), record); err != nil {
		return err
	}
	if name == runName {
		v.run = record
		return nil
	}
	v.records[name] = record
	return nil
}

// record returns the record of a handler, or nil.
func (v *version) record(id string) *storage.Record {
	return v.records[strings.ReplaceAll(id, "/", ".")]
}

func (v *version) String() string {
	if v.gone {
		return fmt.Sprintf("version %d: it is gone", v.number)
	}
	words := []string{fmt.Sprintf("version %d: step %d, base %s", v.number, v.step, number(v.base))}
	for _, name := range slices.Sorted(maps.Keys(v.records)) {
		r := v.records[name]
		word := fmt.Sprintf("%s %s %d", name, r.Purpose, r.Retries)
		if r.Success {
			word += " success"
		}
		if r.Failure {
			word += " failure"
		}
		if r.Cycle != "" {
			word += " in " + r.Cycle
		}
		if !r.Delayed.IsZero() && !r.Finished() {
			word += " until " + r.Delayed.Format("05.000")
		}
		words = append(words, word)
	}
	if v.cycle != nil {
		words = append(words, v.cycle.String())
	}
	if v.run != nil {
		words = append(words, "last run "+v.run.Started.Format(time.RFC3339))
	}
	flags := []struct {
		name string
		set  bool
	}{{"finalizer", v.held}, {"deleted", v.deleting}}
	for _, flag := range flags {
		if flag.set {
			words = append(words, flag.name)
		}
	}
	return strings.Join(append(words, v.broken...), "; ")
}

// isAtRest reports whether operators have nothing left to do.
func (v *version) isAtRest() bool {
	return v.gone || !v.deleting && len(v.records) == 0 && v.base != nil && *v.base == v.step
}

// hasMissed reports whether a run of the schedule is late.
func (v *version) hasMissed(now time.Time) bool {
	return !v.gone && !v.deleting && v.run != nil && now.Sub(v.run.Started) > time.Minute+10*time.Second
}
