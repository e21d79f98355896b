package handler

import (
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// Occasion is one state of one object, with what has happened to it: what
// declarations are matched against.
type Occasion struct {
	Subject Subject
	Reason  cause.Reason
	Initial bool
	Old     object.Essence // nil: never handled
	New     object.Essence
	Diff    diff.Diff
	// Review is what the API server asks about; nil: it has not asked.
	Review *Review
}

// InScope tells whether the object is any business of the handler, now or at a
// later time of its life: all filters but those of the reason and the change.
// An object that is in the scope of no handler is left entirely alone.
func (d *Declaration) InScope(o *Occasion) bool {
	args := d.lazily(o)
	return matchMetadata(d.Labels, o.Subject.body(), "labels", args) &&
		matchMetadata(d.Annotations, o.Subject.body(), "annotations", args) &&
		d.matchValue(o, args) && d.matchWhen(args)
}

// Selects tells whether the handler is to be called on the occasion.
func (d *Declaration) Selects(o *Occasion) bool {
	if d.Kind.Admission() {
		return d.reviews(o.Review) && d.InScope(o)
	}
	if !d.Kind.reactsTo(o.Reason, o.Initial) {
		return false
	}
	if d.Kind == OnResume && o.Reason == cause.Delete && !d.Deleted {
		return false // it might start what the deletion handlers have just stopped
	}
	return d.matchChange(o, d.lazily(o)) && d.InScope(o)
}

// Transition is the occasion from the handler's point of view: of its field.
func (d *Declaration) Transition(o *Occasion) Transition {
	t := Transition{Reason: o.Reason, Old: essenceValue(o.Old), New: essenceValue(o.New), Diff: o.Diff, OldEssence: o.Old}
	if d.Field != nil {
		t.Old, t.New = fieldOf(o.Old, d.Field), fieldOf(o.New, d.Field)
		t.Diff = o.Diff.Reduce(d.Field)
	}
	return t
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

// lazily makes the arguments for callbacks, if any callback asks.
func (d *Declaration) lazily(o *Occasion) func() Arguments {
	var args Arguments
	return func() Arguments {
		if args == nil {
			switch {
			case d.Kind.Changing():
				args = NewChange(o.Subject, d.Param, Attempt{}, d.Transition(o), nil)
			case d.Kind.Admission():
				args = NewAdmission(o.Subject, d, o.Review)
			default:
				args = &reading{o.Subject, d.Param}
			}
		}
		return args
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

// matchValue checks the presence and the value of the field: as it is now, or, for
// handlers that are called in between of two states, as it was before.
func (d *Declaration) matchValue(o *Occasion, args func() Arguments) bool {
	if d.Field == nil {
		return true
	}
	filter := d.Value
	if filter.IsZero() {
		filter = Present()
	}
	value, _ := o.Subject.body().Lookup(d.Field)
	if filter.Matches(object.NewValue(value), args()) {
		return true
	}
	return d.Kind.Changing() && o.Old != nil && filter.Matches(fieldOf(o.Old, d.Field), args())
}

func (d *Declaration) matchChange(o *Occasion, args func() Arguments) bool {
	if d.Field == nil || !d.Kind.Changing() {
		return true
	}
	before, after := fieldOf(o.Old, d.Field), fieldOf(o.New, d.Field)
	if d.Kind.needsChange() && len(o.Diff.Reduce(d.Field)) == 0 {
		return false
	}
	return d.Old.Matches(before, args()) && d.New.Matches(after, args())
}

func (d *Declaration) matchWhen(args func() Arguments) bool {
	for _, when := range d.When {
		if !when(args()) {
			return false
		}
	}
	return true
}
