package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMistakesAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "the schedule is empty",
		"  ":                             "the schedule is empty",
		"@every 5m":                      "use kopf.Interval",
		"0 3 * *":                        `"0 3 * *" cannot be read: expected exactly 5 fields`,
		"0 0 3 * * *":                    "cannot be read: expected exactly 5 fields",
		strings.Repeat("0", 501):         "has 501 characters",
		"0 25 * * *":                     "cannot be read: end of range (25) above maximum (23)",
		"0 0 * * 8":                      `"0 0 * * 8" cannot be read: end of range (8) above maximum (6)`,
		"0 0 * * 5-7/0":                  "cannot be read: end of range (7) above maximum (6)",
		"0 0 * * x-7":                    "cannot be read: failed to parse int from x",
		"0 0 * * 8-7":                    "cannot be read: end of range (7) above maximum (6)",
		"0 0 * * 7/2":                    "cannot be read: beginning of range (7) beyond end of range (6)",
		"0 0 7 * * 7":                    "cannot be read: expected exactly 5 fields",
		"@sometimes":                     "cannot be read: unrecognized descriptor",
		"0 0 30 2 *":                     "never runs",
		"TZ=Nowhere/Land 0 3 * * *":      `the time zone "Nowhere/Land" is not known here`,
		"TZ=0":                           `the time zone "0" is not known here`,
		"CRON_TZ=Europe/Berlin":          "the schedule is empty",
		"CRON_TZ= 0 3 * * *":             `the time zone "" depends on the machine`,
		"TZ=Europe/Berlin @every 5m":     "use kopf.Interval",
		"TZ=UTC TZ=Europe/Berlin @daily": "has two time zones",
	} {
		if _, err := Parse(text, time.UTC); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func TestTimesOfTheClock(t *testing.T) {
	tests := map[string]struct {
		text, zone, from string
		want             []string
	}{
		"a day":               {"0 3 * * *", "Europe/Berlin", "2026-01-01T00:00:00+01:00", []string{"01-01 03:00 CET", "01-02 03:00 CET"}},
		"a name":              {"@monthly", "UTC", "2026-01-01T00:00:00Z", []string{"02-01 00:00 UTC", "03-01 00:00 UTC"}},
		"an own zone":         {"TZ=Asia/Tokyo 0 3 * * *", "UTC", "2026-01-01T00:00:00Z", []string{"01-02 03:00 JST"}},
		"a leap day":          {"0 12 29 2 *", "UTC", "2026-01-01T00:00:00Z", []string{"02-29 12:00 UTC"}},
		"the missing hour":    {"30 2 * * *", "Europe/Berlin", "2026-03-28T03:00:00+01:00", []string{"03-29 03:00 CEST", "03-30 02:30 CEST"}},
		"several in it":       {"*/15 2 * * *", "Europe/Berlin", "2026-03-29T01:00:00+01:00", []string{"03-29 03:00 CEST", "03-30 02:00 CEST"}},
		"the hour after it":   {"0 3 * * *", "Europe/Berlin", "2026-03-29T01:00:00+01:00", []string{"03-29 03:00 CEST", "03-30 03:00 CEST"}},
		"the doubled hour":    {"30 2 * * *", "Europe/Berlin", "2026-10-25T00:00:00+02:00", []string{"10-25 02:30 CEST", "10-26 02:30 CET"}},
		"from within it":      {"30 2 * * *", "Europe/Berlin", "2026-10-25T02:10:00+01:00", []string{"10-26 02:30 CET"}},
		"several of both":     {"*/30 2 * * *", "Europe/Berlin", "2026-10-25T00:00:00+02:00", []string{"10-25 02:00 CEST", "10-25 02:30 CEST", "10-26 02:00 CET"}},
		"every hour, missing": {"0 * * * *", "Europe/Berlin", "2026-03-29T00:30:00+01:00", []string{"03-29 01:00 CET", "03-29 03:00 CEST"}},
		"Sunday as 7":         {"0 0 * * 7", "UTC", "2026-01-01T00:00:00Z", []string{"01-04 00:00 UTC", "01-11 00:00 UTC"}},
		"a list with 7":       {"0 0 * * 1,7", "UTC", "2026-01-01T00:00:00Z", []string{"01-04 00:00 UTC", "01-05 00:00 UTC", "01-11 00:00 UTC"}},
		"a range to 7":        {"0 0 * * Fri-7", "UTC", "2026-01-01T00:00:00Z", []string{"01-02 00:00 UTC", "01-03 00:00 UTC", "01-04 00:00 UTC", "01-09 00:00 UTC"}},
		"a range from 0 to 7": {"0 0 * * 0-7", "UTC", "2026-01-01T00:00:00Z", []string{"01-02 00:00 UTC", "01-03 00:00 UTC"}},
		"7 alone, as a range": {"0 0 * * 7-7", "UTC", "2026-01-01T00:00:00Z", []string{"01-04 00:00 UTC", "01-11 00:00 UTC"}},
		"steps to 7":          {"0 0 * * 3-7/2", "UTC", "2026-01-01T00:00:00Z", []string{"01-02 00:00 UTC", "01-04 00:00 UTC", "01-07 00:00 UTC"}},
		"all hours, listed":   {"0 0-12,13-23 * * *", "Europe/Berlin", "2026-10-25T01:30:00+02:00", []string{"10-25 02:00 CEST", "10-25 02:00 CET", "10-25 03:00 CET"}},
		"all hours, in steps": {"0 */1 * * *", "Europe/Berlin", "2026-10-25T01:30:00+02:00", []string{"10-25 02:00 CEST", "10-25 02:00 CET", "10-25 03:00 CET"}},
		"all hours but one":   {"0 0-22 * * *", "Europe/Berlin", "2026-10-25T01:30:00+02:00", []string{"10-25 02:00 CEST", "10-25 03:00 CET"}},
		"every hour, doubled": {"0 * * * *", "Europe/Berlin", "2026-10-25T01:30:00+02:00", []string{"10-25 02:00 CEST", "10-25 02:00 CET", "10-25 03:00 CET"}},
		"a missing midnight":  {"0 0 * * *", "America/Asuncion", "2023-09-30T12:00:00-04:00", []string{"10-01 01:00 -03", "10-02 00:00 -03"}},
		"half an hour":        {"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00+10:30", []string{"10-04 02:30 +11", "10-05 02:15 +11"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			zone, err := Zone(test.zone)
			if err != nil {
				t.Fatal(err)
			}
			s, err := Parse(test.text, zone)
			if err != nil {
				t.Fatal(err)
			}
			at, err := time.Parse(time.RFC3339, test.from)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for range test.want {
				at = s.Next(at.UTC())
				got = append(got, at.Format("01-02 15:04 MST"))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// A schedule with certain hours runs once on each day, in every zone.
func TestEveryDayHasOneRun(t *testing.T) {
	for _, name := range []string{"Europe/Berlin", "America/New_York", "America/Santiago", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Kathmandu"} {
		zone, err := Zone(name)
		if err != nil {
			t.Fatal(err)
		}
		for minutes := 0; minutes < 24*60; minutes += 15 {
			s, err := Parse(fmt.Sprintf("%d %d * * *", minutes%60, minutes/60), zone)
			if err != nil {
				t.Fatal(err)
			}
			at := time.Date(2025, 12, 31, 23, 59, 0, 0, zone)
			for day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() == 2026; day = day.AddDate(0, 0, 1) {
				at = s.Next(at)
				if got := at.In(zone); got.YearDay() != day.YearDay() {
					t.Fatalf("%s, minute %d: got %s", name, minutes, got)
				}
			}
		}
	}
}

func TestMissedRunsAreTheLast(t *testing.T) {
	s, err := Parse("*/5 * * * *", time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 1, 12, 5, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		after  time.Time
		number int
		want   []time.Time
	}{
		"none are wanted":    {now.AddDate(-1, 0, 0), 0, nil},
		"none is missed":     {now, 3, nil},
		"fewer":              {now.Add(-7 * time.Minute), 3, []time.Time{now.Add(-5 * time.Minute), now}},
		"more":               {now.AddDate(-20, 0, 0), 2, []time.Time{now.Add(-5 * time.Minute), now}},
		"more than an hour":  {now.AddDate(-1, 0, 0), 14, []time.Time{now.Add(-65 * time.Minute), now}},
		"in the last moment": {now.Add(-time.Nanosecond), 1, []time.Time{now}},
	} {
		got := s.Missed(test.after, now, test.number)
		if len(got) == 14 {
			got = []time.Time{got[0], got[13]}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// Texts that differ in spaces, and in where the zone is named, are the same schedule.
func TestEqualSchedulesHaveEqualTexts(t *testing.T) {
	berlin, err := Zone("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		text string
		zone *time.Location
		want string
	}{
		{" 0  3 * * 7 ", berlin, "CRON_TZ=Europe/Berlin 0 3 * * 7"},
		{"TZ=Europe/Berlin 0 3 * * 7", time.UTC, "CRON_TZ=Europe/Berlin 0 3 * * 7"},
		{"@daily", time.UTC, "CRON_TZ=UTC @daily"},
	} {
		s, err := Parse(test.text, test.zone)
		if err != nil || s.String() != test.want {
			t.Errorf("%q: got %s, %v", test.text, s, err)
		}
		again, err := Parse(s.String(), time.UTC)
		if err != nil || again.String() != test.want {
			t.Errorf("%s: got %s, %v", s, again, err)
		}
	}
}
