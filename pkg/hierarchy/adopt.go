package hierarchy

import "context"

// Adopt makes the objects children of the owner: it does AppendOwnerReference,
// HarmonizeNaming, AdjustNamespace and Label at once, with the options of all.
//
// Caveats: Kubernetes looks for the owner in the child's own namespace. It
// deletes a child that is in another namespace than its namespaced owner, and
// one that is cluster-scoped while its owner is not. A namespace that the child
// has already stays unless Forced is given, so the first can happen here: it is
// allowed, and the context's logger tells it. A cluster-scoped owner can have
// children everywhere; their namespaces must be given.
//
// Errors: there is no owner, its kind, name or uid is unknown, an object has
// another controller already, or is not an object at all.
//
// Specification: Hierarchies, "Adopting".
func Adopt(ctx context.Context, objs any, opts ...AdoptOption) error {
	return run(ctx, "adopt", objs, opts, naming, placing, labelling, owning)
}

// Label adds the owner's labels to the objects, or those of the option Labels,
// which needs no owner.
//
// Specification: Hierarchies, "Labels", "Nested labels".
func Label(ctx context.Context, objs any, opts ...LabelOption) error {
	return run(ctx, "label", objs, opts, labelling)
}

// HarmonizeNaming names the objects after the owner, or as the option Name says.
// Unless Strict is given, the name is a prefix, which the API server completes
// when the object is created (metadata.generateName).
//
// Specification: Hierarchies, "Names".
func HarmonizeNaming(ctx context.Context, objs any, opts ...NamingOption) error {
	return run(ctx, "name", objs, opts, naming)
}

// AdjustNamespace puts the objects into the owner's namespace, or into that of
// the option Namespace. If the owner is cluster-scoped, the objects stay where
// they are; with Forced, their namespace is removed.
//
// Specification: Hierarchies, "Namespaces".
func AdjustNamespace(ctx context.Context, objs any, opts ...NamespaceOption) error {
	return run(ctx, "set the namespace of", objs, opts, placing)
}

// AppendOwnerReference adds a reference to the owner, unless the object has one
// already, with whatever flags. Kubernetes deletes the object when the last of
// its owners is gone. Errors and caveats are those of Adopt.
//
// Specification: Hierarchies, "Owner references".
func AppendOwnerReference(ctx context.Context, objs any, opts ...ReferenceOption) error {
	return run(ctx, "add an owner to", objs, opts, owning)
}

// RemoveOwnerReference removes the reference to the owner, if there is one. The
// owner's uid decides, not its name.
//
// Specification: Hierarchies, "Owner references".
func RemoveOwnerReference(ctx context.Context, objs any, opts ...RemovalOption) error {
	return run(ctx, "remove the owner of", objs, opts, disowning)
}
