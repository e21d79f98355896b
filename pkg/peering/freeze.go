package peering

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
// Specification: Command-line options.
func Freeze(ctx context.Context, config *rest.Config, target Target, options FreezeOptions) error {
	if options.Lifetime < time.Second {
		return errors.New("a freeze needs a lifetime of at least a second")
	}
	record := Record{Priority: options.Priority, LastSeen: time.Now(), Lifetime: options.Lifetime}
	entry := record.encode()
	entry["message"] = nil // removes the message of an earlier freeze
	if options.Message != "" {
		entry["message"] = options.Message
	}
	return patchEntry(ctx, config, target, options.Identity, entry)
}

// Resume removes the entry of Freeze under the same identity, which has the same
// default. It is no error if there is no such entry.
func Resume(ctx context.Context, config *rest.Config, target Target, identity string) error {
	return patchEntry(ctx, config, target, identity, nil)
}

// patchEntry sets one entry of a peering, or removes it.
func patchEntry(ctx context.Context, config *rest.Config, target Target, identity string, entry map[string]any) error {
	f, err := newFinder(config, nil)
	if err != nil {
		return err
	}
	found, err := f.find(ctx, target)
	if err != nil {
		return err
	}
	var value any // a nil map would not remove the entry
	if entry != nil {
		value = entry
	}
	_, err = found.patch(ctx, "", map[string]any{cmp.Or(identity, ManualIdentity()): value})
	if err != nil && !IsNotFound(err) {
		return fmt.Errorf("the peering object %q cannot be changed: %w", target.Name, err)
	}
	return err
}
