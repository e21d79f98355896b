package handler

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/kopf-go/kopf/pkg/model/selector"
)

// persistable are the ids of which annotations can be named: a slash becomes a
// dot in them, and an angle bracket an underscore.
var validID = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_./<>]*[A-Za-z0-9])?$`)

// validate finds what the compiler could not.
func (d *Declaration) validate() {
	d.validateSelector()
	d.validateID()
	d.validateFilters()
	d.validateLimits()
	d.validateTiming()
	d.validateReviews()
}

func (d *Declaration) validateSelector() {
	if d.Kind != Subhandler && !d.Kind.IsActivity() && d.Object == nil && d.Selector == (selector.Selector{}) {
		d.addProblem(errors.New("it is for no resource: name one by kopf.Resource(...), or a pointer to a Go type by kopf.For"))
	}
}

func (d *Declaration) validateID() {
	switch {
	case d.idGiven && d.ID == "":
		d.addProblem(errors.New("its id is empty"))
	case d.ID != "" && !validID.MatchString(d.ID):
		trouble := "it cannot have the id" // of those that keep no progress
		if d.Kind.IsChange() || d.Kind.IsBackground() {
			trouble = "its progress cannot be kept under the id"
		}
		d.addProblem(fmt.Errorf("%s %q: "+
			"an id begins and ends with a letter or a digit of ASCII, and has only -, _, ., / beside them", trouble, d.ID))
	}
}

func (d *Declaration) validateFilters() {
	if d.Field == nil && !(d.Value.IsZero() && d.ValueBefore.IsZero() && d.ValueAfter.IsZero()) {
		d.addProblem(errors.New("Value, ValueBefore and ValueAfter filter by the value of a field: add kopf.Field(...)"))
	}
	if !d.Value.IsZero() && !(d.ValueBefore.IsZero() && d.ValueAfter.IsZero()) {
		d.addProblem(errors.New("Value cannot be combined with ValueBefore or ValueAfter: it means either of them"))
	}
	for _, matcher := range []Matcher{d.Value, d.ValueBefore, d.ValueAfter} {
		d.addProblem(matcher.err)
	}
	d.validateMetadata("label", d.Labels)
	d.validateMetadata("annotation", d.Annotations)
	for _, when := range d.Predicates {
		if when == nil {
			d.addProblem(errors.New("When has no function"))
		}
	}
}

func (d *Declaration) validateMetadata(what string, filters map[string]Matcher) {
	for _, key := range slices.Sorted(maps.Keys(filters)) {
		switch matcher := filters[key]; {
		case key == "":
			d.addProblem(fmt.Errorf("a filter has an empty %s", what))
		case matcher.err != nil:
			d.addProblem(fmt.Errorf("the filter of the %s %q: %w", what, key, matcher.err))
		case matcher.IsZero():
			d.addProblem(fmt.Errorf("the filter of the %s %q is empty: use kopf.Present(), kopf.Absent() or kopf.Equal(...)", what, key))
		}
	}
}

func (d *Declaration) validateLimits() {
	if d.Errors < ErrorsTemporary || d.Errors > ErrorsIgnored {
		d.addProblem(fmt.Errorf("the mode of errors %d is none of kopf.ErrorsTemporary, ErrorsPermanent and ErrorsIgnored", d.Errors))
	}
	if d.Timeout < 0 {
		d.addProblem(fmt.Errorf("the timeout %s is negative", d.Timeout))
	}
	if d.Retries != nil && *d.Retries < 1 {
		d.addProblem(fmt.Errorf("kopf.Retries(%d) allows no attempt: the number includes the first attempt, so it must be at least 1", *d.Retries))
	}
	d.addProblem(d.Backoff.Validate())
}

// validateTiming looks at what daemons and timers have beside the others.
func (d *Declaration) validateTiming() {
	d.validateDuration("interval", d.Interval)
	d.validateDuration("idle time", d.Idle)
	d.validateDuration("cancellation backoff", d.CancellationBackoff)
	d.validateDuration("cancellation polling", d.CancellationPolling)
	if d.CancellationTimeout != nil {
		d.validateDuration("cancellation timeout", *d.CancellationTimeout)
	}
	if d.Sharp && d.Interval == 0 {
		d.addProblem(errors.New("a timer can be sharp only with an interval: add kopf.Interval(...)"))
	}
	if d.Kind == OnIndex && d.Table == nil {
		d.addProblem(errors.New("there is no index to fill: declare it by kopf.NewIndex"))
	}
}

func (d *Declaration) validateDuration(what string, value time.Duration) {
	if value < 0 {
		d.addProblem(fmt.Errorf("the %s %s is negative", what, value))
	}
}

// validateReviews looks at what admission handlers have beside the others.
func (d *Declaration) validateReviews() {
	if d.Kind.IsAdmission() && (d.ID == AllValidating || d.ID == AllMutating) {
		d.addProblem(fmt.Errorf("under the path %q all handlers of the kind are called: give it another kopf.ID", "/"+d.ID))
	}
}
