package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/plan"
	"github.com/kopf-go/kopf/pkg/storage"
)

// Options configures a Recorder.
type Options struct {
	File     string
	Fields   []string // that stay readable
	Handlers registry.Handlers
	DiffBase storage.DiffBase
	Progress storage.Progress
	Logger   logr.Logger
}

// Recorder writes a recording. It is safe for concurrent use.
type Recorder struct {
	options Options
	hasher  *Hasher
	began   time.Time

	mu        sync.Mutex
	file      *os.File // nil after a failure
	resources map[string]bool

	queue queue // of entries, in order
}

// Open creates the file, which only its owner can read, or empties it.
func Open(o Options) (*Recorder, error) {
	var fields []object.Path
	for _, text := range o.Fields {
		path, err := object.ParsePath(text)
		if err != nil {
			return nil, fmt.Errorf("a recorded field: %w", err)
		}
		fields = append(fields, path)
	}
	file, err := os.OpenFile(o.File, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, ownerOnly) //nolint:gosec // named by the operator
	if err != nil {
		return nil, fmt.Errorf("the recording cannot be written: %w", err)
	}
	if err := file.Chmod(ownerOnly); err != nil { // it may have existed
		return nil, errors.Join(fmt.Errorf("the recording cannot be kept from others: %w", err), file.Close())
	}
	constants := ConstantsOf(o.Handlers)
	r := &Recorder{options: o, hasher: NewHasher(constants, fields), began: time.Now(), file: file, resources: map[string]bool{}}
	r.write(Entry{Start: &Start{Format: Format, Constants: constants, Fields: o.Fields}})
	return r, nil
}

const ownerOnly = 0o600

// ConstantsOf returns the constants that filters compare with.
func ConstantsOf(handlers registry.Handlers) []any {
	var found []any
	add := func(m handler.Matcher) {
		value, ok := m.Constant()
		switch value.(type) {
		case string, int64, float64:
			if ok && !slices.Contains(found, value) {
				found = append(found, value)
			}
		}
	}
	for _, d := range handlers {
		for _, one := range d.Labels {
			add(one)
		}
		for _, one := range d.Annotations {
			add(one)
		}
		add(d.Value)
		add(d.ValueBefore)
		add(d.ValueAfter)
	}
	return found
}

// closeTimeout limits how long Close waits for filters of users that do not return.
const closeTimeout = 5 * time.Second

// Close writes what is left, and closes the file.
func (r *Recorder) Close() error {
	select {
	case <-r.queue.emptied():
	case <-time.After(closeTimeout):
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		return nil
	}
	file := r.file
	r.file = nil
	return file.Close()
}

// write adds a line after those before it. After a failure, which is logged, nothing is written anymore.
func (r *Recorder) write(e Entry) {
	at := time.Since(r.began)
	r.queue.add(func() { r.writeNow(e, at) })
}

func (r *Recorder) writeNow(e Entry, at time.Duration) {
	e.At = at.String()
	line, err := json.Marshal(e)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.append(line, err)
}

// append adds a line. The caller holds the lock.
func (r *Recorder) append(line []byte, err error) {
	if r.file == nil {
		return
	}
	if err == nil {
		_, err = r.file.Write(append(line, '\n'))
	}
	if err != nil {
		r.options.Logger.Error(err, "The recording ends here, because it cannot be written.", "file", r.options.File)
		_ = r.file.Close()
		r.file = nil
	}
}

// describe writes down a resource once, before everything that mentions it.
func (r *Recorder) describe(of selector.Resource) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.resources[of.String()] {
		r.resources[of.String()] = true
		line, err := json.Marshal(Entry{At: time.Since(r.began).String(), Resource: &of})
		r.append(line, err)
	}
}

func (r *Recorder) decider(of selector.Resource, handlers registry.Handlers) Decider {
	return Decider{Resource: of, Handlers: handlers, DiffBase: r.options.DiffBase, Progress: r.options.Progress}
}

// Event records a watch event. It returns at once: the filters of users, which it calls, must not hold up
// the watch.
func (r *Recorder) Event(of selector.Resource, handlers registry.Handlers, event object.WatchEvent) {
	at := time.Since(r.began)
	r.queue.add(func() {
		r.describe(of)
		raw := event.Snapshot.Body().Raw()
		kind := string(event.Type)
		hashed := r.hasher.Object(raw)
		decider := r.decider(of, handlers)
		made, err := decider.Event(raw, kind)
		again, failure := decider.Event(hashed, kind)
		r.writeNow(Entry{Event: &Event{
			Resource: of.String(), Type: kind, Object: hashed, Decision: made, Unsure: unsure(made, again, errors.Join(err, failure)),
		}}, at)
	})
}

// Pass records the plan of a pass with its facts.
func (r *Recorder) Pass(of selector.Resource, p *plan.Plan, f plan.Facts) {
	r.queue.add(func() { r.describe(of) })
	made := decisionOf(p, f)
	hashed := r.hasher.Object(p.CallContext.Body.Raw())
	facts := Facts{Old: r.hasher.Object(p.Old), Initial: f.Memory.Initial, Held: p.HasFinalizer, Records: recordsOf(p)}
	again, err := r.decider(of, f.Handlers.Declared).Pass(hashed, facts)
	r.write(Entry{Pass: &Pass{Resource: of.String(), Object: hashed, Facts: facts, Decision: made, Unsure: unsure(made, again, err)}})
}

// Result is the result of an attempt.
type Result struct {
	Final bool // no other attempt follows
	Err   error
}

// Outcome records an attempt.
func (r *Recorder) Outcome(of selector.Resource, body *object.Body, id string, result Result) {
	text := "retried"
	switch {
	case result.Final && result.Err == nil:
		text = "succeeded"
	case result.Final:
		text = "failed"
	}
	r.write(Entry{Outcome: &Outcome{Resource: of.String(), Object: r.hasher.text(string(body.UID())), Handler: id, Result: text}})
}

// Everything marks a decision of which nothing can be repeated.
const Everything = "*"

// unsure returns the handlers about which two decisions differ.
func unsure(made, again Decision, err error) []string {
	if err != nil || made.Reason != again.Reason || !reflect.DeepEqual(made.Diff, again.Diff) {
		return []string{Everything}
	}
	return slices.Concat(Differing(made.Due, again.Due), Differing(made.Background, again.Background), Differing(made.Children, again.Children))
}

// Differing returns what is in one of two lists only.
func Differing(a, b []string) []string {
	var found []string
	for _, one := range a {
		if !slices.Contains(b, one) {
			found = append(found, one)
		}
	}
	for _, one := range b {
		if !slices.Contains(a, one) {
			found = append(found, one)
		}
	}
	return found
}
