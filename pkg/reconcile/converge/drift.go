package converge

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Field is a field of a child that differs from what the handler wants.
type Field struct {
	// Path is the field in the notation of people: "spec.template.spec.containers[name=web].image".
	Path string
	// Manager is the field manager that has changed it, and Time when. They are zero if
	// nobody owns the field: it was removed.
	Manager string
	Time    time.Time
}

// String returns the path, and who has changed it.
func (f Field) String() string {
	if f.Manager == "" {
		return f.Path + " (removed)"
	}
	return fmt.Sprintf("%s (by %s)", f.Path, f.Manager)
}

// findDrift reads a child, and returns the wanted fields that the operator does not own anymore.
func (r *run) findDrift(ctx context.Context, a applied) ([]Field, error) {
	u, err := r.api.Get(ctx, a.resource, a.Namespace, a.Name)
	if err != nil {
		return nil, err
	}
	entries := u.GetManagedFields()
	var owned fieldSet
	if entry := entryOf(entries, r.Manager); entry != nil {
		owned = parseFields(entry.FieldsV1.GetRawBytes())
	}
	var fields []Field
	for _, p := range owned.uncovered(a.content) {
		field := Field{Path: p.String()}
		if by := lastOwner(entries, p, r.Manager); by != nil {
			field.Manager = by.Manager
			if by.Time != nil {
				field.Time = by.Time.Time
			}
		}
		fields = append(fields, field)
	}
	return fields, nil
}

// lastOwner returns the entry of the manager, except one, that has written a field last.
func lastOwner(entries []metav1.ManagedFieldsEntry, p path, except string) *metav1.ManagedFieldsEntry {
	var last *metav1.ManagedFieldsEntry
	for i := range entries {
		entry := &entries[i]
		if entry.Manager == except || entry.FieldsV1 == nil || !parseFields(entry.FieldsV1.GetRawBytes()).has(p) {
			continue
		}
		if last == nil || last.Time.Before(entry.Time) {
			last = entry
		}
	}
	return last
}

// patience is how often a child is restored at once within the window before the operator
// restores it less often.
const (
	patience = 5
	window   = time.Minute
)

// fight is a child that another client keeps changing.
type fight struct {
	rounds int
	last   time.Time
}

// delay returns the pause before the next restoration.
func (f *fight) delay(delays []time.Duration) time.Duration {
	if f == nil || f.rounds <= patience || len(delays) == 0 {
		return 0
	}
	pause := delays[min(f.rounds-patience-1, len(delays)-1)]
	return max(0, time.Until(f.last.Add(pause)))
}

// noteRestoration counts the restorations of a child. It reports whether another client has
// changed the child so often that this must be reported, once.
func (c *Converger) noteRestoration(s *state, key Key) (report bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.fights == nil {
		s.fights = map[Key]*fight{}
	}
	f := s.fights[key]
	if f == nil || time.Since(f.last) > window+f.delay(c.Delays) && f.rounds <= patience || time.Since(f.last) > 2*window+c.longestDelay() {
		f = &fight{}
		s.fights[key] = f
	}
	f.rounds++
	f.last = time.Now()
	return f.rounds == patience+1
}

func (c *Converger) longestDelay() time.Duration {
	if len(c.Delays) == 0 {
		return 0
	}
	return slices.Max(c.Delays)
}

// reportFight reports the fields that another client keeps changing.
func (r *run) reportFight(ctx context.Context, a applied) {
	var texts []string
	fields, _ := r.findDrift(ctx, a) // only for the text
	for _, field := range fields {
		texts = append(texts, field.String())
	}
	r.Log.Error(fmt.Errorf("the child %s: %s", a.Key, strings.Join(texts, ", ")),
		"Another client keeps changing a child, so the operator restores it less often. Let only one of them manage the fields.", "manager", r.Manager)
}
