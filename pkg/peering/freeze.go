package peering

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

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

// Freeze pauses all operators of a peering by an entry among theirs. It replaces an
// earlier freeze under the same identity. If the object does not exist, Freeze returns a
// NotFoundError, which says how to create it.
//
// Freeze returns the other entries by what it means for them.
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
	object, err := findObject(ctx, config, target)
	if err != nil {
		return Frozen{}, err
	}
	state, err := patchEntry(ctx, object, target, identity, entry)
	if err != nil {
		return Frozen{}, err
	}
	return frozenBy(state.status, identity, options.Priority, time.Now()), nil
}

// Frozen lists the other entries of a peering that are alive, sorted.
type Frozen struct {
	// Paused pause because of the freeze. Active have a higher priority and do not.
	Paused, Active []string
}

func frozenBy(status map[string]any, identity string, priority int, now time.Time) Frozen {
	var frozen Frozen
	records, _ := Parse(status)
	for _, peer := range slices.Sorted(maps.Keys(records)) {
		switch record := records[peer]; {
		case peer == identity || record.IsDead(now):
		case record.Priority > priority:
			frozen.Active = append(frozen.Active, peer)
		default:
			frozen.Paused = append(frozen.Paused, peer)
		}
	}
	return frozen
}

// Resume removes the entry of Freeze under the same identity, which has the same default. If
// there is no such entry, it changes nothing, and returns a *NotFrozenError.
func Resume(ctx context.Context, config *rest.Config, target Target, identity string) error {
	identity = orManual(identity)
	object, err := findObject(ctx, config, target)
	if err != nil {
		return err
	}
	state, err := object.read(ctx)
	switch {
	case IsNotFound(err):
		return err
	case err != nil:
		return fmt.Errorf("the peering object %q cannot be read: %w", target.Name, err)
	}
	if _, frozen := state.status[identity]; !frozen {
		return &NotFrozenError{Identity: identity, Entries: slices.Sorted(maps.Keys(state.status))}
	}
	_, err = patchEntry(ctx, object, target, identity, nil)
	return err
}

// NotFrozenError says that a peering has no entry of an identity.
type NotFrozenError struct {
	Identity string
	Entries  []string // of others, sorted
}

func (e *NotFrozenError) Error() string {
	if len(e.Entries) == 0 {
		return fmt.Sprintf("there is no freeze by %s, and no other entry", e.Identity)
	}
	return fmt.Sprintf("there is no freeze by %s; the entries are: %s", e.Identity, strings.Join(e.Entries, ", "))
}

// orManual returns the identity, or ManualIdentity if it is empty.
func orManual(identity string) string {
	if identity == "" {
		return ManualIdentity()
	}
	return identity
}

// findObject connects to a peering object.
func findObject(ctx context.Context, config *rest.Config, target Target) (peeringAPI, error) {
	f, err := newFinder(config, nil)
	if err != nil {
		return nil, err
	}
	return f.find(ctx, target)
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
