package peering

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
)

// DefaultFreezePriority is that of Freeze: above what is deployed, below what is
// developed.
const DefaultFreezePriority = 100

// FreezeOptions is an entry that nobody is behind: it pauses the operators of a peering.
type FreezeOptions struct {
	// Identity is its name. Default: ManualIdentity, so that the same person at
	// the same machine can take it back.
	Identity string
	// Priority pauses all operators that have the same or a lower one. It is
	// used as it is; DefaultFreezePriority is a good choice.
	Priority int
	// Lifetime is when the operators resume by themselves, at least a second.
	Lifetime time.Duration
	// Message is for people who look at the object. Default: none.
	Message string
}

// Freeze pauses all operators of a peering, by an entry among theirs. The object
// must be there; a NotFoundError says how to create it. To freeze again is to
// replace the entry.
//
// Specification: Command-line options.
func Freeze(ctx context.Context, config *rest.Config, target Target, pause FreezeOptions) error {
	if pause.Lifetime < time.Second {
		return errors.New("operators are frozen for some time: give a lifetime of at least a second")
	}
	record := Record{Priority: pause.Priority, LastSeen: time.Now(), Lifetime: pause.Lifetime}
	entry := record.encode()
	entry["message"] = nil // there may be one in the entry that is replaced
	if pause.Message != "" {
		entry["message"] = pause.Message
	}
	return patchEntry(ctx, config, target, pause.Identity, entry)
}

// Resume takes back what Freeze has done under the same identity; the default is
// the same too. It is no error if there is nothing to be taken back.
func Resume(ctx context.Context, config *rest.Config, target Target, identity string) error {
	return patchEntry(ctx, config, target, identity, nil)
}

// patchEntry sets one entry of a peering, or removes it.
func patchEntry(ctx context.Context, config *rest.Config, target Target, identity string, entry map[string]any) error {
	c, err := newFinder(config, nil)
	if err != nil {
		return err
	}
	found, err := c.find(ctx, target)
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
