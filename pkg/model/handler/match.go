package handler

import (
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

// InScope reports whether the handler applies to the object now, or may apply to it
// later: it checks all filters except the reason and the change. An object that is in
// the scope of no handler is left alone.
func (d *Declaration) InScope(o *Cause) bool {
	args := d.lazyArguments(o)
	return matchMetadata(d.Labels, o.CallContext.body(), "labels", args) &&
		matchMetadata(d.Annotations, o.CallContext.body(), "annotations", args) &&
		d.matchValue(o, args) && d.matchWhen(args) && d.decoding.agree(args)
}

// Selects reports whether the handler must be called for the cause.
func (d *Declaration) Selects(o *Cause) bool {
	if d.Kind.IsAdmission() {
		return d.matchReview(o.Review) && d.InScope(o)
	}
	if !d.Kind.reactsTo(o.Reason, o.Initial) {
		return false
	}
	if d.Kind == OnResume && o.Reason == cause.Delete && !d.Deleted {
		return false // it might undo the work of deletion handlers
	}
	return d.matchChange(o, d.lazyArguments(o)) && d.InScope(o)
}

// Transition returns the change from the handler's point of view, relative to its field.
func (d *Declaration) Transition(o *Cause) Transition {
	t := Transition{Reason: o.Reason, Old: essenceValue(o.Old), New: essenceValue(o.New), Diff: o.Diff, OldEssence: o.Old}
	if field := d.changedField(); field != nil {
		t.Old, t.New = fieldOf(o.Old, field), fieldOf(o.New, field)
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

// lazyArguments returns a function that creates the arguments for callbacks on first
// use.
func (d *Declaration) lazyArguments(o *Cause) func() Arguments {
	var args Arguments
	return func() Arguments {
		if args == nil {
			args = o.ArgumentsOf(d)
		}
		return args
	}
}

// ArgumentsOf returns the arguments of the handler for callbacks about it, such as filters.
// They belong to no attempt.
func (o *Cause) ArgumentsOf(d *Declaration) Arguments {
	switch {
	case d.Kind.IsChange():
		return NewChange(o.CallContext, d.Param, Attempt{}, d.Transition(o), nil)
	case d.Kind.IsAdmission():
		return NewAdmission(o.CallContext, d, o.Review)
	case d.Kind == OnEvent:
		return NewEvent(o.CallContext, d.Param, o.EventType)
	case d.Kind == OnDaemon:
		return NewTask(o.CallContext, d.Param, Attempt{}, nil)
	case d.Kind == OnTimer:
		return NewTick(o.CallContext, d.Param, Attempt{}, nil)
	default:
		return &readOnly{o.CallContext, d.Param}
	}
}

func matchMetadata(filters map[string]Matcher, body *object.Body, part string, args func() Arguments) bool {
	for key, filter := range filters {
		value, _ := body.Lookup(object.Path{"metadata", part, key})
		if !filter.Matches(object.NewValue(value), args()) {
			return false
		}
	}
	return true
}

// matchValue checks the presence and the value of the field: the current value or, for
// handlers of changes between two states, also the previous value.
func (d *Declaration) matchValue(o *Cause, args func() Arguments) bool {
	if d.Field == nil {
		return true
	}
	filter := d.Value
	if filter.IsZero() {
		filter = Present()
	}
	value, _ := o.CallContext.body().Lookup(d.Field)
	if filter.Matches(object.NewValue(value), args()) {
		return true
	}
	return d.Kind.IsChange() && o.Old != nil && filter.Matches(fieldOf(o.Old, d.Field), args())
}

func (d *Declaration) matchChange(o *Cause, args func() Arguments) bool {
	if d.Field == nil || !d.Kind.IsChange() {
		return true
	}
	before, after := fieldOf(o.Old, d.Field), fieldOf(o.New, d.Field)
	if d.Kind.needsChange() && len(o.Diff.Reduce(d.Field)) == 0 {
		return false
	}
	return d.ValueBefore.Matches(before, args()) && d.ValueAfter.Matches(after, args())
}

func (d *Declaration) matchWhen(args func() Arguments) bool {
	for _, when := range d.Predicates {
		if !when(args()) {
			return false
		}
	}
	return true
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
			requirement.Operator, requirement.Values = metav1.LabelSelectorOpIn, []string{want}
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
