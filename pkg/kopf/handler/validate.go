package handler

import (
	"errors"
	"fmt"
	"strings"
)

// validate finds what the compiler could not.
func (d *Declaration) validate() {
	d.validateID()
	d.validateFilters()
	d.validateLimits()
}

func (d *Declaration) validateID() {
	switch {
	case d.given && d.ID == "":
		d.problem(errors.New("its id is empty"))
	case strings.ContainsAny(d.ID, "\n\r\t"):
		d.problem(fmt.Errorf("its id %q has control characters", d.ID))
	}
}

func (d *Declaration) validateFilters() {
	if d.Field == nil && !(d.Value.IsZero() && d.Old.IsZero() && d.New.IsZero()) {
		d.problem(errors.New("Value, Old and New filter by the value of a field: add kopf.Field(...)"))
	}
	if !d.Value.IsZero() && !(d.Old.IsZero() && d.New.IsZero()) {
		d.problem(errors.New("Value cannot be combined with Old or New: it means either of them"))
	}
	for _, matcher := range []Matcher{d.Value, d.Old, d.New} {
		d.problem(matcher.err)
	}
	for key, matcher := range d.Labels {
		d.validateMetadata("label", key, matcher)
	}
	for key, matcher := range d.Annotations {
		d.validateMetadata("annotation", key, matcher)
	}
	for _, when := range d.When {
		if when == nil {
			d.problem(errors.New("When has no function"))
		}
	}
}

func (d *Declaration) validateMetadata(what, key string, m Matcher) {
	switch {
	case key == "":
		d.problem(fmt.Errorf("a filter has an empty %s", what))
	case m.IsZero():
		d.problem(fmt.Errorf("the filter of the %s %q is empty: use kopf.Present(), kopf.Absent() or kopf.Equal(...)", what, key))
	}
	d.problem(m.err)
}

func (d *Declaration) validateLimits() {
	if d.Timeout < 0 {
		d.problem(fmt.Errorf("the timeout %s is negative", d.Timeout))
	}
	if d.Retries != nil && *d.Retries < 0 {
		d.problem(fmt.Errorf("the number of retries %d is negative", *d.Retries))
	}
	if d.Backoff != nil && *d.Backoff < 0 {
		d.problem(fmt.Errorf("the backoff %s is negative", *d.Backoff))
	}
}
