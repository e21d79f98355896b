package wire

import (
	"fmt"
	"time"
)

// timeLayout is the format of stored times: UTC, with microseconds and the zone.
const timeLayout = "2006-01-02T15:04:05.000000-07:00"

// Times outside these years are rejected. A machine without a clock starts in 1970, and
// the records of an operator on it must not be lost. Times that are earlier, or too late
// to fit into a Duration, are mistakes: a handler delayed until the year 9999 would
// silently never run.
const (
	firstYear = 1970
	lastYear  = 2261
)

// FormatTime encodes a time; it returns nil for the zero time. A handler may ask for any
// delay, so a time that ParseTime would reject is replaced by the nearest valid one.
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

// ParseTime decodes a time, with or without a fraction. A time without a zone is in
// UTC, as the oldest operators wrote it.
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
		return time.Time{}, fmt.Errorf("%s is not a timestamp like 2020-12-31T23:59:59.000000+00:00", field)
	case t.Year() < firstYear || t.Year() > lastYear:
		return time.Time{}, fmt.Errorf("%s is in the year %d, outside %d to %d", field, t.Year(), firstYear, lastYear)
	}
	return t, nil
}
