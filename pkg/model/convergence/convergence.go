// Package convergence has the options of handlers that say which children an object should
// have, and the words in which that is stored on objects.
package convergence

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Options say how the children of an object are made what they should be. The zero value has
// the safe defaults.
type Options struct {
	// AllowEmpty accepts that no child should exist, although some do.
	AllowEmpty bool
	// AdoptExisting takes over existing objects that have no owner.
	AdoptExisting bool
	// WaitReady applies a wave only when the children of the earlier waves are ready.
	WaitReady bool
	// Prune has the protected kinds that may be deleted nevertheless.
	Prune []schema.GroupKind
	// Recreate has the kinds whose objects may be deleted and created again, if the API server
	// refuses to change them and accepts what is wanted for a new object.
	Recreate []schema.GroupKind
}

// protected are the kinds that are deleted only on request, because their deletion also
// deletes data.
var protected = []schema.GroupKind{
	{Kind: "Namespace"},
	{Kind: "PersistentVolume"},
	{Kind: "PersistentVolumeClaim"},
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
}

// MayPrune reports whether children of a kind are deleted when they should not exist anymore.
func (o *Options) MayPrune(kind schema.GroupKind) bool {
	return !slices.Contains(protected, kind) || slices.Contains(o.Prune, kind)
}

// MayRecreate reports whether a child of the kind may be deleted and created again.
func (o *Options) MayRecreate(kind schema.GroupKind) bool { return slices.Contains(o.Recreate, kind) }

// ParseKinds parses kinds in the notation "Kind" for the core group, or "Kind.group".
func ParseKinds(texts []string) ([]schema.GroupKind, error) {
	var kinds []schema.GroupKind
	for _, text := range texts {
		kind := schema.ParseGroupKind(text)
		if kind.Kind == "" || strings.ToLower(kind.Kind[:1]) == kind.Kind[:1] {
			return nil, fmt.Errorf("%q is not a kind: write it as in manifests, with the group: %q, %q", text, "ConfigMap", "Deployment.apps")
		}
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

// Validate returns an error for options that can never have an effect, or that contradict the
// protection of data.
func (o *Options) Validate() error {
	for _, kind := range o.Prune {
		if !slices.Contains(protected, kind) {
			return fmt.Errorf("kopf.Prune(%q) has no effect: children of this kind are deleted anyway when they are not returned; only these need it: %s", kind, protectedKinds())
		}
	}
	for _, kind := range o.Recreate {
		if slices.Contains(protected, kind) {
			return fmt.Errorf("kopf.Recreate(%q) would delete data: these kinds are never recreated: %s", kind, protectedKinds())
		}
	}
	return nil
}

func protectedKinds() string {
	var names []string
	for _, kind := range protected {
		names = append(names, kind.String())
	}
	return strings.Join(names, ", ")
}
