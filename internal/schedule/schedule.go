// Package schedule computes when something with a schedule of cron runs.
//
// The schedule is in the time of the clocks of a time zone, which go forward and back. A schedule with
// certain hours, such as "30 2 * * *", runs once on each of its days: at the end of the hour that does not exist,
// and in the first of two equal hours. A schedule for all 24 hours, such as "*/15 * * * *" or "0 0-23 * * *", runs at
// equal intervals, also in both of two equal hours. That is how cron does it.
package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Schedule is a schedule in a time zone. It is immutable, and safe for concurrent use.
type Schedule struct {
	spec *cron.SpecSchedule
	zone *time.Location
	text string
}

// maxText is the length of texts that can be schedules: the lists of all minutes, hours, days, and months are shorter.
// The text of the last run is stored on the object.
const maxText = 500

// String returns the schedule with its time zone, in a form that Parse reads. Two schedules with equal texts are equal.
func (s Schedule) String() string { return s.text }

var parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// Parse parses five fields of cron, or a name such as @daily. A prefix, as in
// "CRON_TZ=Europe/Berlin 0 3 * * *", replaces the time zone.
func Parse(text string, zone *time.Location) (Schedule, error) {
	if len(text) > maxText {
		return Schedule{}, fmt.Errorf("the schedule has %d characters, and can have %d", len(text), maxText)
	}
	fields := strings.TrimSpace(text)
	if name, isNamed := strings.CutPrefix(strings.TrimPrefix(fields, "CRON_"), "TZ="); isNamed {
		name, rest, _ := strings.Cut(name, " ")
		named, err := Zone(name)
		if err != nil {
			return Schedule{}, fmt.Errorf("the schedule %q: %w", text, err)
		}
		zone = named
		fields = strings.TrimSpace(rest)
	}
	if strings.HasPrefix(fields, "@every") {
		return Schedule{}, fmt.Errorf("the schedule %q has an interval: use kopf.Interval, or kopf.IntervalFunc", text)
	}
	if strings.Contains(fields, "=") {
		return Schedule{}, fmt.Errorf("the schedule %q has two time zones, or one that is not at its beginning", text)
	}
	if fields == "" {
		return Schedule{}, errors.New(`the schedule is empty: it has five fields, as in "0 3 * * *", or a name, such as "@daily"`)
	}
	parsed, err := parser.Parse(withSunday(fields))
	if err != nil {
		return Schedule{}, fmt.Errorf("the schedule %q cannot be read: %w", text, err)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return Schedule{}, fmt.Errorf("the schedule %q has no times of the clock", text)
	}
	spec.Location = time.UTC
	s := Schedule{spec, zone, "CRON_TZ=" + zone.String() + " " + strings.Join(strings.Fields(fields), " ")}
	if s.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return Schedule{}, fmt.Errorf("the schedule %q never runs: it names a day that no month has", text)
	}
	return s, nil
}

// Zone returns the time zone with the name of the IANA database, such as Europe/Berlin.
func Zone(name string) (*time.Location, error) {
	if name == "" || name == "Local" {
		return nil, fmt.Errorf(`the time zone %q depends on the machine: give a name such as "Europe/Berlin" or "UTC"`, name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf(`the time zone %q is not known here: %w; if the name is right, the image has no time zones: import _ "time/tzdata" into the program`, name, err)
	}
	return zone, nil
}

// withSunday replaces 7 as the day of the week, which most kinds of cron accept for Sunday, and the parser does not: "5-7"
// becomes "5,6,0". It leaves what it does not understand to the parser.
func withSunday(fields string) string {
	parts := strings.Fields(fields)
	if len(parts) != 5 || !strings.Contains(parts[4], "7") {
		return fields
	}
	days := strings.Split(parts[4], ",")
	for i, day := range days {
		days[i] = untilSunday(day)
	}
	parts[4] = strings.Join(days, ",")
	return strings.Join(parts, " ")
}

// untilSunday lists the days of a range that ends with 7, such as "5-7" or "1-7/2". It returns all others as they are.
func untilSunday(days string) string {
	ends, stepText, hasStep := strings.Cut(days, "/")
	from, to, isRange := strings.Cut(ends, "-")
	if ends == "7" && !hasStep {
		return "0"
	}
	if !isRange || to != "7" {
		return days
	}
	first := slices.Index(weekdays, strings.ToLower(from))
	if first < 0 {
		parsed, err := strconv.ParseUint(from, 10, 8)
		if err != nil || parsed > 7 {
			return days
		}
		first = int(parsed)
	}
	step := 1
	if hasStep {
		parsed, err := strconv.ParseUint(stepText, 10, 8)
		if err != nil || parsed == 0 {
			return days
		}
		step = int(parsed)
	}
	var list []string
	for day := first; day <= 7; day += step {
		list = append(list, strconv.Itoa(day%7))
	}
	return strings.Join(list, ",")
}

// weekdays are the names of the days, by their numbers.
var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// everyHour has the bits of all 24 hours.
const everyHour = 1<<24 - 1

// Next returns the first time of the schedule after the given one, in the zone of the schedule. It returns zero if there is
// none within five years.
func (s Schedule) Next(after time.Time) time.Time {
	if s.spec.Hour&everyHour == everyHour {
		spec := *s.spec
		spec.Location = s.zone
		return spec.Next(after.In(s.zone))
	}
	for clock := clockOf(after.In(s.zone)); ; {
		clock = s.spec.Next(clock)
		if clock.IsZero() {
			return clock
		}
		at := s.when(clock)
		if at.After(after) {
			return at
		}
	}
}

// clockOf returns what the clocks show at a time, as a time without a zone.
func clockOf(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// when returns the first time at which the clocks of the zone show this time or a later one.
func (s Schedule) when(clock time.Time) time.Time {
	at := time.Date(clock.Year(), clock.Month(), clock.Day(), clock.Hour(), clock.Minute(), clock.Second(), 0, s.zone)
	began, ended := at.ZoneBounds()
	switch shown := clockOf(at); {
	case shown.After(clock): // the clocks have just gone forward over it
		return began
	case shown.Before(clock): // they are about to
		return ended
	case began.IsZero():
		return at
	}
	_, offset := at.Zone()
	_, before := began.Add(-time.Second).Zone()
	first := at.Add(time.Duration(offset-before) * time.Second)
	if clockOf(first).Equal(clock) { // the clocks have gone back, and show it for the second time
		return first
	}
	return at
}

// Missed returns the last times of the schedule after the first one and until now, at most the given number, in their order.
func (s Schedule) Missed(after, now time.Time, number int) []time.Time {
	if number <= 0 {
		return nil
	}
	// A schedule can have many times in a long while: the end of it is searched first.
	for back := time.Hour; ; back *= 4 {
		from := now.Add(-back)
		isAll := !from.After(after) || back > 10*365*24*time.Hour
		if isAll {
			from = after
		}
		var found []time.Time
		for at := s.Next(from); !at.IsZero() && !at.After(now); at = s.Next(at) {
			found = append(found, at)
		}
		if len(found) >= number {
			return found[len(found)-number:]
		}
		if isAll {
			return found
		}
	}
}
