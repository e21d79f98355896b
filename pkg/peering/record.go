package peering

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// DefaultLifetime is the lifetime of an entry without one.
const DefaultLifetime = 60 * time.Second

// timeLayout is the format of times in entries: in UTC, with microseconds and the zone.
const timeLayout = "2006-01-02T15:04:05.000000-07:00"

// Record is the entry of one operator in a peering object.
type Record struct {
	// Priority pauses operators of a lower priority, and others of the same priority.
	Priority int
	// LastSeen is when the entry was renewed. If it is zero, as in entries that people
	// write, the entry does not expire.
	LastSeen time.Time
	// Lifetime is how long the entry is valid, in whole seconds.
	Lifetime time.Duration
	// Lease names the lease by which the replicas of the operator elect their leader, or
	// is empty. Only the leader has an entry.
	Lease string
	// Message is the reason of a freeze, for people. Operators have none.
	Message string
	// Frozen is set in entries of Freeze. Kopf does not set it: see IsFreeze.
	Frozen bool
}

// IsFreeze reports whether the entry is not that of an operator, but was made by a person, who pauses
// operators. Entries of Kopf do not say it. Operators without a pod have a time and a random part in
// their identities, and people do not: user@host. Operators always have a time, but no message.
func (r Record) IsFreeze(identity string) bool {
	return r.Frozen || r.Message != "" || r.LastSeen.IsZero() || strings.Contains(identity, "@") && !strings.Contains(identity, "/")
}

// Deadline returns when the entry expires unless it is renewed.
func (r Record) Deadline(now time.Time) time.Time {
	if r.LastSeen.IsZero() {
		return now.Add(r.Lifetime)
	}
	return r.LastSeen.Add(r.Lifetime)
}

// IsDead reports whether the entry has expired, and its operator counts as dead.
func (r Record) IsDead(now time.Time) bool { return !r.Deadline(now).After(now) }

// encode returns the record as it is stored. It rounds the lifetime up to seconds.
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

// Parse parses the status of a peering object. It returns invalid entries separately,
// with their errors: one invalid entry must not hide the others. Missing fields have the
// defaults of Kopf.
func Parse(status map[string]any) (records map[string]Record, invalid map[string]error) {
	records = map[string]Record{}
	invalid = map[string]error{}
	for identity, entry := range status {
		record, err := parseRecord(entry)
		if err != nil {
			invalid[identity] = err
			continue
		}
		records[identity] = record
	}
	return records, invalid
}

func parseRecord(entry any) (Record, error) {
	fields, ok := entry.(map[string]any)
	if !ok {
		return Record{}, fmt.Errorf("the entry is a %T, not an object", entry)
	}
	priority, priorityErr := parseInt("priority", fields["priority"], 0)
	lifetime, lifetimeErr := parseInt("lifetime", fields["lifetime"], int64(DefaultLifetime/time.Second))
	lastSeen, lastSeenErr := parseTime("lastseen", fields["lastseen"])
	lease, _ := fields["lease"].(string)
	message, _ := fields["message"].(string)
	frozen, _ := fields["freeze"].(bool)
	record := Record{Priority: int(priority), LastSeen: lastSeen, Lifetime: seconds(lifetime), Lease: lease, Message: message, Frozen: frozen}
	return record, errors.Join(priorityErr, lifetimeErr, lastSeenErr)
}

// seconds returns the duration, capped at the longest possible one.
func seconds(count int64) time.Duration {
	const limit = math.MaxInt64 / int64(time.Second)
	return time.Duration(max(-limit, min(count, limit))) * time.Second
}

// parseInt parses an integer, which people may have put into quotes.
func parseInt(field string, value any, fallback int64) (int64, error) {
	switch value := value.(type) {
	case nil:
		return fallback, nil
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
	return 0, fmt.Errorf("%s is not an integer: %v", field, value)
}

// parseTime parses a time with or without a fraction. Without a zone it is in UTC, as old
// operators write it.
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
	return time.Time{}, fmt.Errorf("%s is not a timestamp such as 2020-12-31T23:59:59.000000+00:00: %v", field, value)
}
