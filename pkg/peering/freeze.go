package peering

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// DefaultFreezePriority is the default priority of a freeze: above deployed operators,
// below operators under development.
const DefaultFreezePriority = 100

// FreezeOptions describe an entry without an operator, which pauses the operators of a
// peering.
type FreezeOptions struct {
	// Identity names the entry. Default: ManualIdentity, so that the same person on the
	// same machine can resume the operators.
	Identity string
	// Priority pauses all operators with the same or a lower priority. It has no default;
	// consider DefaultFreezePriority.
	Priority int
	// Lifetime is when the operators resume by themselves, at least a second.
	Lifetime time.Duration
	// Message tells people who look at the object why it is frozen. Default: none.
	Message string
}

// Freeze pauses all operators of a peering by an entry among theirs, in each API group that
// has the object. It replaces an earlier freeze under the same identity. If the object does
// not exist, Freeze returns a NotFoundError, which says how to create it.
//
// Freeze returns the other entries by what it means for them. If it fails in one group, it
// returns the error, and those of the other group.
//
// Specification: Command-line options.
func Freeze(ctx context.Context, config *rest.Config, target Target, options FreezeOptions) (Frozen, error) {
	if options.Lifetime < time.Second {
		return Frozen{}, errors.New("a freeze needs a lifetime of at least a second")
	}
	record := Record{Priority: options.Priority, LastSeen: time.Now(), Lifetime: options.Lifetime}
	entry := record.encode()
	entry["message"] = nil // removes the message of an earlier freeze
	if options.Message != "" {
		entry["message"] = options.Message
	}
	identity := orManual(options.Identity)
	if identity != os.Getenv(podVariable) { // in the pod of an operator, which would keep it in its own entry
		entry["freeze"] = true
	}
	var frozen Frozen
	var err error
	frozen.Forbidden, err = forEachGroup(ctx, config, target, func(object peeringAPI) error {
		state, err := patchEntry(ctx, object, target, identity, entry)
		if err == nil {
			frozen.add(state.status, identity, options.Priority, time.Now())
		}
		return err
	})
	return frozen, err
}

// Frozen lists the operators with an entry that is alive, sorted. Other freezes are not among them.
type Frozen struct {
	// Paused pause because of the freeze. Active have a higher priority and do not.
	Paused, Active []string
	// Forbidden are the API groups whose object may not be changed, if it exists: operators
	// that meet only there do not pause.
	Forbidden []string
}

// add adds the entries of one object.
func (f *Frozen) add(status map[string]any, identity string, priority int, now time.Time) {
	records, _ := Parse(status)
	for peer, record := range records {
		switch {
		case peer == identity || record.IsDead(now) || record.IsFreeze(peer):
		case record.Priority > priority:
			f.Active = append(f.Active, peer)
		default:
			f.Paused = append(f.Paused, peer)
		}
	}
	f.Paused = sortedSet(f.Paused)
	f.Active = sortedSet(f.Active)
}

// sortedSet sorts names and removes duplicates.
func sortedSet(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// Resume removes the entry of Freeze under the same identity, which has the same default, in
// each API group. If there is no such entry, it changes nothing, and returns a
// *NotFrozenError.
func Resume(ctx context.Context, config *rest.Config, target Target, identity string) error {
	identity = orManual(identity)
	resumed := false
	none := &NotFrozenError{Identity: identity}
	_, err := forEachGroup(ctx, config, target, func(object peeringAPI) error {
		state, err := object.read(ctx)
		if err != nil && !IsNotFound(err) {
			return fmt.Errorf("the peering object %q cannot be read: %w", target.Name, err)
		}
		none.add(state.status, time.Now())
		if _, frozen := state.status[identity]; err == nil && frozen {
			resumed = true
			_, err = patchEntry(ctx, object, target, identity, nil)
		}
		return err
	})
	if err != nil || resumed {
		return err
	}
	return none
}

// NotFrozenError says that a peering has no entry of an identity.
type NotFrozenError struct {
	Identity string
	Entries  []string // of others, sorted
	// Freezes are the entries that hold and that are freezes, see Record.IsFreeze.
	Freezes map[string]Record
}

// add adds the entries of one object.
func (e *NotFrozenError) add(status map[string]any, now time.Time) {
	e.Entries = sortedSet(append(e.Entries, slices.Collect(maps.Keys(status))...))
	records, _ := Parse(status)
	for identity, record := range records {
		if record.IsFreeze(identity) && !record.IsDead(now) {
			if e.Freezes == nil {
				e.Freezes = map[string]Record{}
			}
			e.Freezes[identity] = record
		}
	}
}

func (e *NotFrozenError) Error() string {
	switch {
	case len(e.Entries) == 0:
		return fmt.Sprintf("there is no freeze by %s, and no other entry", e.Identity)
	case len(e.Freezes) == 0:
		return fmt.Sprintf("there is no freeze by %s, nor by others; the entries are: %s", e.Identity, strings.Join(e.Entries, ", "))
	}
	var freezes []string
	for _, identity := range slices.Sorted(maps.Keys(e.Freezes)) {
		r := e.Freezes[identity]
		lasts := "that does not expire"
		if !r.LastSeen.IsZero() {
			lasts = "until " + r.Deadline(time.Time{}).UTC().Format(time.RFC3339)
		}
		if r.Message != "" {
			lasts += fmt.Sprintf(" (%q)", r.Message)
		}
		freezes = append(freezes, identity+" "+lasts)
	}
	return fmt.Sprintf("there is no freeze by %s, but one by %s", e.Identity, strings.Join(freezes, ", and one by "))
}

// orManual returns the identity, or ManualIdentity if it is empty.
func orManual(identity string) string {
	if identity == "" {
		return ManualIdentity()
	}
	return identity
}

// forEachGroup calls a function for the peering object of each API group. It fails if the
// function fails, or if no group has the object.
//
// It is no failure if one of the groups is forbidden, which forEachGroup returns: in a
// cluster with an unused definition, the permissions for the used one are enough.
func forEachGroup(ctx context.Context, config *rest.Config, target Target, do func(peeringAPI) error) (forbidden []string, err error) {
	f, err := newFinder(config, nil)
	if err != nil {
		return nil, err
	}
	var missing, failures []error
	for _, group := range groups() {
		object, err := f.find(ctx, target, group)
		if err == nil {
			err = do(object)
		}
		switch {
		case apierrors.IsForbidden(err):
			forbidden = append(forbidden, group)
			missing = append(missing, err)
		case IsNotFound(err):
			missing = append(missing, err)
		case err != nil:
			failures = append(failures, err)
		}
	}
	if len(missing) == len(groups()) {
		return nil, chooseMissing(missing)
	}
	return forbidden, errors.Join(failures...)
}

// patchEntry sets one entry of a peering, or removes it, and returns the new state.
func patchEntry(ctx context.Context, object peeringAPI, target Target, identity string, entry map[string]any) (peeringState, error) {
	var value any // a nil map would not remove the entry
	if entry != nil {
		value = entry
	}
	state, err := object.patch(ctx, "", map[string]any{identity: value})
	if err != nil && !IsNotFound(err) {
		return state, fmt.Errorf("the peering object %q cannot be changed: %w", target.Name, err)
	}
	return state, err
}

// Read returns the entries of a peering, from the objects of both API groups. It changes nothing. If
// neither object exists, it returns a NotFoundError. Invalid entries are left out, because they
// pause nothing.
func Read(ctx context.Context, config *rest.Config, target Target) (map[string]Record, error) {
	all := map[string]Record{}
	_, err := forEachGroup(ctx, config, target, func(object peeringAPI) error {
		state, err := object.read(ctx)
		if err != nil {
			return err
		}
		records, _ := Parse(state.status)
		maps.Copy(all, records)
		return nil
	})
	return all, err
}
