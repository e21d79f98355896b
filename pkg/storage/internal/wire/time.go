package wire

import (
	"fmt"
	"time"
)

// timeLayout is how times are written: in UTC, with microseconds and the zone.
const timeLayout = "2006-01-02T15:04:05.000000-07:00"

// The years that are believed. A machine without a clock begins in 1970, and what
// such an operator has recorded must not be lost. Anything earlier, or past what
// fits into a Duration from there, is the work of an accident: a delay until the
// year 9999 is a handler that silently never runs.
const (
	firstYear = 1970
	lastYear  = 2261
)

// FormatTime writes a time, nil for the zero one. A handler may ask for any delay:
// what is not believed on reading is not written either, but the nearest time is.
func FormatTime(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	if t.Year() < firstYear {
		t = time.Date(firstYear, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	if t.Year() > lastYear {
		t = time.Date(lastYear, 12, 31, 23, 59, 59, 0, time.UTC)
	}
	text := t.Format(timeLayout)
	return &text
}

// ParseTime reads a time, with or without a fraction, and with or without a zone:
// then it is in UTC, as the oldest operators wrote it.
func ParseTime(field string, text *string) (time.Time, error) {
	if text == nil {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, *text)
	if err != nil {
		t, err = time.Parse("2006-01-02T15:04:05", *text)
	}
	t = t.UTC()
	switch {
	case err != nil:
		return time.Time{}, fmt.Errorf("%s is no timestamp like 2020-12-31T23:59:59.000000+00:00", field)
	case t.Year() < firstYear || t.Year() > lastYear:
		return time.Time{}, fmt.Errorf("%s is in the year %d, which nobody can have meant", field, t.Year())
	}
	return t, nil
}
