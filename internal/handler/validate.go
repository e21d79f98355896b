package handler

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/kopf-go/kopf/internal/knownfields"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// validID matches the ids that can become the name of an annotation. In that name, a
// slash becomes a dot, and an angle bracket becomes an underscore.
var validID = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_./<>]*[A-Za-z0-9])?$`)

// invalidInID matches what ids cannot contain.
var invalidInID = regexp.MustCompile(`[^-A-Za-z0-9_./<>]`)

// validate records the mistakes that the compiler cannot find.
func (d *Declaration) validate() {
	d.validateSelector()

	// The id.
	switch {
	case d.idGiven && d.ID == "":
		d.addProblem(errors.New("its id is empty"))
	case d.ID != "" && !validID.MatchString(d.ID):
		trouble := "it cannot have the id" // the handler stores no progress
		if d.Kind.IsChange() || d.Kind.IsBackground() || d.Kind.IsTriggered() {
			trouble = "its progress cannot be stored under the id"
		}
		d.addProblem(fmt.Errorf("%s %q: "+
			"an id begins and ends with an ASCII letter or digit, and contains only these and -, _, ., /", trouble, d.ID))
	}

	// The filters.
	d.validateField()
	if d.Field == nil && !(d.Value.IsZero() && d.ValueBefore.IsZero() && d.ValueAfter.IsZero()) {
		d.addProblem(errors.New("Value, ValueBefore, and ValueAfter filter by the value of a field: add kopf.Field(...)"))
	}
	if !d.Value.IsZero() && !(d.ValueBefore.IsZero() && d.ValueAfter.IsZero()) {
		d.addProblem(errors.New("Value cannot be combined with ValueBefore or ValueAfter: it matches both values"))
	}
	for _, matcher := range []Matcher{d.Value, d.ValueBefore, d.ValueAfter} {
		d.addProblem(matcher.err)
	}
	d.validateMetadata("label", d.Labels)
	d.validateMetadata("annotation", d.Annotations)
	for _, when := range d.Predicates {
		if when.Accepts == nil {
			d.addProblem(errors.New("the predicate of When is nil"))
		}
	}

	// The limits of attempts, and the revision.
	if d.Errors < ErrorsTemporary || d.Errors > ErrorsIgnored {
		d.addProblem(fmt.Errorf("invalid mode of errors %d: use kopf.ErrorsTemporary, ErrorsPermanent, or ErrorsIgnored", d.Errors))
	}
	if d.Timeout < 0 {
		d.addProblem(fmt.Errorf("the timeout %s is negative", d.Timeout))
	}
	if d.Retries != nil && *d.Retries < 1 {
		d.addProblem(fmt.Errorf("kopf.Retries(%d) allows no attempt: the number includes the first attempt, so it must be at least 1", *d.Retries))
	}
	d.addProblem(d.Backoff.Validate())
	if d.Revision == "" && (d.Baseline || d.Rollout != nil) {
		d.addProblem(errors.New("kopf.Baseline and kopf.Rollout are about a revision: add kopf.Revision(...)"))
	}

	// What only some kinds have: daemons, timers, indices, admission handlers, and Ensure.
	d.validateDuration("interval", d.Interval)
	d.validateDuration("idle time", d.Idle)
	d.validateDuration("cancellation backoff", d.CancellationBackoff)
	d.validateDuration("cancellation polling", d.CancellationPolling)
	if d.CancellationTimeout != nil {
		d.validateDuration("cancellation timeout", *d.CancellationTimeout)
	}
	if d.Interval != 0 && d.IntervalFunc != nil {
		d.addProblem(errors.New("kopf.Interval and kopf.IntervalFunc are both set: leave one of them out"))
	}
	d.validateSchedule()
	if d.Kind == OnDaemon && d.ChildLabel != "" && len(d.Owned) == 0 {
		d.addProblem(errors.New("kopf.ChildLabel is about children that a daemon looks at: add kopf.WatchChildren(...)"))
	}
	if d.Sharp && d.Interval == 0 && d.IntervalFunc == nil {
		d.addProblem(errors.New("a timer can be sharp only with an interval: add kopf.Interval(...)"))
	}
	if d.Kind == OnIndex && d.Table == nil {
		d.addProblem(errors.New("there is no index to fill: declare the handler with kopf.NewIndex"))
	}
	if d.Kind.IsAdmission() && (d.ID == AllValidating || d.ID == AllMutating) {
		d.addProblem(fmt.Errorf("the path %q calls all handlers of the kind: set another kopf.ID", "/"+d.ID))
	}
	if d.Ensures != nil {
		d.addProblem(d.Ensures.Validate())
	}
}

func (d *Declaration) validateSelector() {
	if d.Kind != Subhandler && !d.Kind.IsActivity() && d.Object == nil && d.Selector == (selector.Selector{}) {
		d.addProblem(errors.New("it has no resource: specify one with kopf.Resource(...), or pass a pointer to a Go type to kopf.For"))
	}
	if d.Kind != OnChild {
		return
	}
	d.addProblem(d.Children.Err())
	if d.ChildObject == nil && d.Children == (selector.Selector{}) {
		d.addProblem(errors.New("it has no resource of children: specify one with kopf.Resource(...), or pass a pointer to a Go type to kopf.OnChildOf"))
	}
}

// validateField records a path that no object has, if it is certain, and known what was meant: a Go type can
// lack a field that the objects have.
func (d *Declaration) validateField() {
	known := knownfields.OfAnyObject()
	what := "objects have"
	if d.Object != nil {
		known = knownfields.OfType(d.Object)
		what = fmt.Sprintf("the type %T has", d.Object)
	}
	if d.Webhook.Subresource != "" { // the object can be of another kind
		return
	}
	for _, field := range d.Fields() {
		if missing := knownfields.Check(known, field); missing != nil && missing.Nearest != nil {
			d.addProblem(fmt.Errorf("%s no field %q: did you mean %q?", what, missing.Path, missing.Nearest))
		}
	}
}

// Fields returns the fields that the declaration names.
func (d *Declaration) Fields() []object.Path {
	if d.Field == nil {
		return d.WakeOn
	}
	return append([]object.Path{d.Field}, d.WakeOn...)
}

func (d *Declaration) validateMetadata(what string, filters map[string]Matcher) {
	for _, key := range slices.Sorted(maps.Keys(filters)) {
		switch matcher := filters[key]; {
		case key == "":
			d.addProblem(fmt.Errorf("a filter has an empty %s", what))
		case matcher.err != nil:
			d.addProblem(fmt.Errorf("the filter of the %s %q: %w", what, key, matcher.err))
		case matcher.IsZero():
			d.addProblem(fmt.Errorf("the filter of the %s %q is empty: use kopf.Present(), kopf.Absent(), or kopf.Equal(...)", what, key))
		}
	}
}

func (d *Declaration) validateDuration(what string, value time.Duration) {
	if value < 0 {
		d.addProblem(fmt.Errorf("the %s %s is negative", what, value))
	}
}

// CheckRevisions returns an error if two declarations of one handler do not agree about the
// revision, or if its rollout cannot be limited.
func CheckRevisions(d, other *Declaration) error {
	switch {
	case !d.IsSame(other):
		return nil
	case d.Kind == OnResume && other.Rollout != nil || other.Kind == OnResume && d.Rollout != nil:
		return fmt.Errorf("%s: the handler %q is declared with OnResume and with kopf.Rollout at %s: it is called for all objects at every start, so there is nothing to roll out", d.DeclaredAt, d.ID, other.DeclaredAt)
	case d.Revision == "" || other.Revision == "" || d.Revision == other.Revision && d.Baseline == other.Baseline && d.Rollout.Equal(other.Rollout):
		return nil
	default:
		return fmt.Errorf("%s: the handler %q has kopf.Revision(%q) here, and kopf.Revision(%q) at %s, or another Baseline or Rollout: give all its declarations the same options", d.DeclaredAt, d.ID, d.Revision, other.Revision, other.DeclaredAt)
	}
}
