package peering

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// DefaultLifetime is that of an entry which does not say it.
const DefaultLifetime = 60 * time.Second

// timeLayout is how times are written: in UTC, with microseconds and the zone.
const timeLayout = "2006-01-02T15:04:05.000000-07:00"

// Record is the entry of one operator in a peering object.
type Record struct {
	// Priority decides whom it pauses: all that have a lower one, and the others
	// of the same one.
	Priority int
	// LastSeen is when it gave its last sign of life. The zero time is none
	// that is known: such an entry, made by hand, never dies.
	LastSeen time.Time
	// Lifetime is how long that sign is to be believed, in whole seconds.
	Lifetime time.Duration
	// Lease is what the replicas of the operator elect their leader by; empty: it
	// does not say. Only the leader has an entry.
	Lease string
}

// Deadline is when the operator counts as dead unless it is heard of again.
func (r Record) Deadline(now time.Time) time.Time {
	if r.LastSeen.IsZero() {
		return now.Add(r.Lifetime)
	}
	return r.LastSeen.Add(r.Lifetime)
}

// IsDead tells whether the operator counts as dead.
func (r Record) IsDead(now time.Time) bool { return !r.Deadline(now).After(now) }

// encode is the record as it is stored. A fraction of a second of its lifetime is
// rounded up.
func (r Record) encode() map[string]any {
	entry := map[string]any{
		"priority": r.Priority,
		"lastseen": r.LastSeen.UTC().Format(timeLayout),
		"lifetime": int64((r.Lifetime + time.Second - 1) / time.Second),
	}
	if r.Lease != "" {
		entry["lease"] = r.Lease
	}
	return entry
}

// Parse reads the status of a peering object. Entries that nobody understands are
// returned apart, with what is wrong with them: one broken entry must not hide the
// others. Fields that are not there have the defaults that Kopf gives them.
func Parse(status map[string]any) (records map[string]Record, broken map[string]error) {
	records, broken = map[string]Record{}, map[string]error{}
	for identity, entry := range status {
		record, err := parseRecord(entry)
		if err != nil {
			broken[identity] = err
			continue
		}
		records[identity] = record
	}
	return records, broken
}

func parseRecord(entry any) (Record, error) {
	fields, ok := entry.(map[string]any)
	if !ok {
		return Record{}, fmt.Errorf("it is no entry of an operator, but %T", entry)
	}
	priority, priorityErr := parseInt("priority", fields["priority"], 0)
	lifetime, lifetimeErr := parseInt("lifetime", fields["lifetime"], int64(DefaultLifetime/time.Second))
	lastSeen, lastSeenErr := parseTime("lastseen", fields["lastseen"])
	lease, _ := fields["lease"].(string)
	record := Record{Priority: int(priority), LastSeen: lastSeen, Lifetime: seconds(lifetime), Lease: lease}
	return record, errors.Join(priorityErr, lifetimeErr, lastSeenErr)
}

// seconds makes a duration, the longest there is for what is longer.
func seconds(count int64) time.Duration {
	const limit = math.MaxInt64 / int64(time.Second)
	return time.Duration(max(-limit, min(count, limit))) * time.Second
}

// parseInt reads a whole number, also one that a person has put into quotes.
func parseInt(field string, value any, absent int64) (int64, error) {
	switch value := value.(type) {
	case nil:
		return absent, nil
	case int64:
		return value, nil
	case float64:
		if value == math.Trunc(value) && math.Abs(value) < 1<<53 {
			return int64(value), nil
		}
	case string:
		if number, err := strconv.ParseInt(value, 10, 64); err == nil {
			return number, nil
		}
	}
	return 0, fmt.Errorf("%s is no whole number: %v", field, value)
}

// parseTime reads a time, with or without a fraction, and with or without a zone:
// then it is in UTC, as old operators write it.
func parseTime(field string, value any) (time.Time, error) {
	if value == nil {
		return time.Time{}, nil
	}
	text, _ := value.(string)
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05"} {
		if parsed, err := time.Parse(layout, text); err == nil {
			return parsed.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%s is no timestamp like 2020-12-31T23:59:59.000000+00:00: %v", field, value)
}
