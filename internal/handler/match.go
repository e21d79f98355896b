package handler

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// Cause is a state of an object and what has happened to it. Declarations are matched
// against it.
type Cause struct {
	CallContext CallContext
	Reason      cause.Reason
	Initial     bool
	Old         object.Essence // nil if the object was never handled
	New         object.Essence
	Diff        diff.Diff
	// EventType is the type of the watch event. It is empty for the initial list, and if
	// there is no event.
	EventType watch.EventType
	// Review is the request of the API server, or nil if there is none.
	Review *Review
}

// RunsCode reports whether code of users runs to decide whether the handler is called: predicates, functions in filters,
// or the decoding of a Go type.
func (d *Declaration) RunsCode() bool {
	filters := slices.Concat(slices.Collect(maps.Values(d.Labels)), slices.Collect(maps.Values(d.Annotations)), []Matcher{d.Value, d.ValueBefore, d.ValueAfter})
	return len(d.Predicates)+len(d.decoding)+len(d.types) > 0 || slices.ContainsFunc(filters, Matcher.runsCode)
}

// InScope reports whether the handler applies to the object now, or may apply to it
// later: it checks all filters except the reason and the change. An object that is in
// the scope of no handler is left alone.
func (d *Declaration) InScope(o *Cause) bool {
	m := matching{d: d, o: o}
	return m.scope().Matches()
}

// Selects reports whether the handler must be called for the cause.
func (d *Declaration) Selects(o *Cause) bool { return d.Mismatch(o).Matches() }

// Mismatch returns the first filter because of which the handler is not called for the
// cause. The result Matches if it is called.
func (d *Declaration) Mismatch(o *Cause) Mismatch {
	m := matching{d: d, o: o}
	switch {
	case d.Kind.IsAdmission() && !d.matchReview(o.Review):
		return Mismatch{Filter: FilterReview}
	case d.Kind.IsAdmission():
		return m.scope()
	case !d.Kind.reactsTo(o.Reason, o.Initial):
		return Mismatch{Filter: FilterReason}
	case d.Kind == OnResume && o.Reason == cause.Delete && !d.Deleted:
		return Mismatch{Filter: FilterReason} // it might undo the work of deletion handlers
	}
	if change := m.change(); !change.Matches() {
		return change
	}
	return m.scope()
}

// matching checks the filters of one declaration for one cause.
type matching struct {
	d    *Declaration
	o    *Cause
	call *Call // for callbacks; nil until they are needed
}

// scope returns the first filter of the object that does not match.
func (m *matching) scope() Mismatch {
	if mismatch := m.labels(); !mismatch.Matches() {
		return mismatch
	}
	if !m.value() {
		return m.ofField(FilterValue)
	}
	return m.callbacks()
}

// labels returns the first filter of labels or annotations that does not match.
func (m *matching) labels() Mismatch {
	if key, ok := m.metadata(m.d.Labels, "labels"); !ok {
		return Mismatch{Filter: FilterLabel, Key: key}
	}
	if key, ok := m.metadata(m.d.Annotations, "annotations"); !ok {
		return Mismatch{Filter: FilterAnnotation, Key: key}
	}
	return Mismatch{}
}

// callbacks returns the first predicate that does not match.
func (m *matching) callbacks() Mismatch {
	for _, when := range m.d.Predicates {
		if !when.Accepts(m.arguments()) {
			return Mismatch{Filter: FilterWhen, Key: when.Place}
		}
	}
	for _, when := range m.d.decoding {
		if accepted, err := when(m.arguments()); err == nil && !accepted { // one that cannot decode the object does not decide
			return Mismatch{Filter: FilterWhenObject}
		}
	}
	return Mismatch{}
}

// change returns the first filter of the change of the field that does not match.
func (m *matching) change() Mismatch {
	d := m.d
	o := m.o
	switch {
	case d.Field == nil || !d.Kind.IsChange():
		return Mismatch{}
	case d.Kind.needsChange() && len(o.Diff.Reduce(d.Field)) == 0:
		return m.ofField(FilterChange)
	case !d.ValueBefore.accepts(fieldOf(o.Old, d.Field), m.arguments()):
		return m.ofField(FilterValueBefore)
	case !d.ValueAfter.accepts(fieldOf(o.New, d.Field), m.arguments()):
		return m.ofField(FilterValueAfter)
	default:
		return Mismatch{}
	}
}

func (m *matching) ofField(filter Filter) Mismatch {
	return Mismatch{Filter: filter, Key: m.d.Field.String()}
}

// metadata reports whether all filters of labels or annotations match, or returns the first
// key whose filter does not.
func (m *matching) metadata(filters map[string]Matcher, part string) (mismatch string, ok bool) {
	ok = true
	for key, filter := range filters {
		value, _ := m.o.CallContext.body().Lookup(object.Path{"metadata", part, key})
		if (ok || key < mismatch) && !filter.accepts(object.NewValue(value), m.arguments()) {
			mismatch = key
			ok = false
		}
	}
	return mismatch, ok
}

// value checks the presence and the value of the field: the current value or, for handlers of
// changes between two states, also the previous value.
func (m *matching) value() bool {
	d := m.d
	o := m.o
	if d.Field == nil {
		return true
	}
	filter := d.Value
	if filter.IsZero() {
		filter = Present()
	}
	value, _ := o.CallContext.body().Lookup(d.Field)
	if filter.accepts(object.NewValue(value), m.arguments()) {
		return true
	}
	return d.Kind.IsChange() && o.Old != nil && filter.accepts(fieldOf(o.Old, d.Field), m.arguments())
}

// arguments returns the call that callbacks get, and creates it on first use.
func (m *matching) arguments() *Call {
	if m.call == nil {
		m.call = m.o.CallOf(m.d)
	}
	return m.call
}

// Filter is a part of a declaration that selects objects and their changes.
type Filter string

// The filters, by the options that set them.
const (
	FilterReason      Filter = "reason" // the kind of the handler: creation, update, …
	FilterReview      Filter = "review" // operation and subresource
	FilterChange      Filter = "change" // of the field
	FilterLabel       Filter = "label"
	FilterAnnotation  Filter = "annotation"
	FilterValue       Filter = "value"
	FilterValueBefore Filter = "value before"
	FilterValueAfter  Filter = "value after"
	FilterWhen        Filter = "When"
	FilterWhenObject  Filter = "WhenObject"
)

// Mismatch is a filter that does not match. The zero value means that all filters match.
type Mismatch struct {
	Filter Filter
	// Key is the key of the label or of the annotation, the path of the field, or the
	// function of When.
	Key string
}

// Matches reports whether there is no mismatch.
func (m Mismatch) Matches() bool { return m.Filter == "" }

// String describes the filter: "the label app".
func (m Mismatch) String() string {
	switch m.Filter {
	case FilterReason, FilterReview:
		return "the kind of the handler"
	case FilterChange:
		return "the change of the field " + m.Key
	case FilterValue, FilterValueBefore, FilterValueAfter:
		return fmt.Sprintf("the %s of the field %s", m.Filter, m.Key)
	case FilterWhen:
		return "the function of When at " + m.Key
	case FilterWhenObject:
		return "the function of WhenObject"
	default:
		return fmt.Sprintf("the %s %s", m.Filter, m.Key)
	}
}

// IsTakenBack reports whether the cause is a change that does not concern a handler anymore
// because its part of the object is as before. All other filters must match.
func (o *Cause) IsTakenBack(d *Declaration) bool {
	isChange := o.Reason == cause.Create || o.Reason == cause.Update
	if !isChange || d.Kind == OnResume || !d.Kind.reactsTo(o.Reason, false) || len(d.Transition(o).Diff) > 0 {
		return false
	}
	m := &matching{d: d, o: o}
	return m.labels().Matches() && m.callbacks().Matches()
}

// Transition returns the change from the handler's point of view, relative to its field.
func (d *Declaration) Transition(o *Cause) Transition {
	t := Transition{Reason: o.Reason, Old: essenceValue(o.Old), New: essenceValue(o.New), Diff: o.Diff, OldEssence: o.Old}
	if field := d.changedField(); field != nil {
		t.Old = fieldOf(o.Old, field)
		t.New = fieldOf(o.New, field)
		t.Diff = o.Diff.Reduce(field)
	}
	return t
}

// changedField returns the field whose change the handler sees, or nil for the entire
// object. A sub-handler without a field sees the same field as its parent.
func (d *Declaration) changedField() object.Path {
	if d.Field == nil && d.parent != nil {
		return d.parent.changedField()
	}
	return d.Field
}

func essenceValue(e object.Essence) object.Value {
	if e == nil {
		return object.Value{}
	}
	return object.NewValue(e)
}

func fieldOf(e object.Essence, field object.Path) object.Value {
	value, _ := object.Lookup(e, field)
	return object.NewValue(value)
}

// CallOf returns what callbacks about the handler get, such as filters. It belongs to no attempt.
func (o *Cause) CallOf(d *Declaration) *Call {
	c := NewCall(d, o.CallContext, Attempt{})
	switch {
	case d.Kind.IsChange():
		c.change = &change{reason: o.Reason}
		c.change.difference.compute = func() Transition { return d.Transition(o) }
	case d.Kind.IsAdmission():
		c.Review = o.Review
	case d.Kind == OnEvent:
		c.Event = o.EventType
	}
	return c
}

// LabelSelector returns the label filters that the API server can check itself:
// presence, absence, and equality with a text. It returns nil if there are none. It
// includes all objects that callbacks may accept.
//
// Specification: Admission control, "Handler options".
func (d *Declaration) LabelSelector() *metav1.LabelSelector {
	var requirements []metav1.LabelSelectorRequirement
	for _, key := range slices.Sorted(maps.Keys(d.Labels)) {
		requirement := metav1.LabelSelectorRequirement{Key: key}
		switch want := d.Labels[key].want.(type) {
		case presence:
			requirement.Operator = metav1.LabelSelectorOpDoesNotExist
			if want {
				requirement.Operator = metav1.LabelSelectorOpExists
			}
		case string:
			requirement.Operator = metav1.LabelSelectorOpIn
			requirement.Values = []string{want}
		default:
			continue
		}
		requirements = append(requirements, requirement)
	}
	if requirements == nil {
		return nil
	}
	return &metav1.LabelSelector{MatchExpressions: requirements}
}
