package hierarchy

import "context"

// Adopt makes the objects children of the owner: it does AppendOwnerReference,
// HarmonizeNaming, AdjustNamespace and Label at once, and takes the options of all.
//
// Caveats: Kubernetes looks for the owner in the child's own namespace. It
// deletes a child in another namespace than its namespaced owner, and a
// cluster-scoped child of a namespaced owner. The namespace of a child that has
// one already stays unless Forced is given, so the former can happen here: it is
// allowed, and logged to the context's logger. A cluster-scoped owner can have
// children in every namespace; you set their namespaces.
//
// Errors: there is no owner; the owner's kind, name or uid is unknown; an object
// has another controller already; an item is not an object.
//
// Specification: Hierarchies, "Adopting".
func Adopt(ctx context.Context, objs any, opts ...AdoptOption) error {
	return update(ctx, "adopt", objs, opts, setName, setNamespace, addLabels, addReference)
}

// Label adds the owner's labels to the objects. With the option Labels it adds
// those instead, and needs no owner.
//
// Specification: Hierarchies, "Labels", "Nested labels".
func Label(ctx context.Context, objs any, opts ...LabelOption) error {
	return update(ctx, "label", objs, opts, addLabels)
}

// HarmonizeNaming names the objects after the owner, or by the option Name. Unless
// Strict is given, the name is a prefix, which the API server completes when the
// object is created (metadata.generateName).
//
// Specification: Hierarchies, "Names".
func HarmonizeNaming(ctx context.Context, objs any, opts ...NamingOption) error {
	return update(ctx, "name", objs, opts, setName)
}

// AdjustNamespace puts the objects into the owner's namespace, or into that of
// the option Namespace. If the owner is cluster-scoped, the objects stay where
// they are; with Forced, their namespace is removed.
//
// Specification: Hierarchies, "Namespaces".
func AdjustNamespace(ctx context.Context, objs any, opts ...NamespaceOption) error {
	return update(ctx, "set the namespace of", objs, opts, setNamespace)
}

// AppendOwnerReference adds a reference to the owner, unless the object has one
// already, with whatever flags. Kubernetes deletes the object when the last of
// its owners is gone. Errors and caveats are those of Adopt.
//
// Specification: Hierarchies, "Owner references".
func AppendOwnerReference(ctx context.Context, objs any, opts ...ReferenceOption) error {
	return update(ctx, "add an owner to", objs, opts, addReference)
}

// RemoveOwnerReference removes the reference to the owner, if there is one. The
// owner's uid decides, not its name.
//
// Specification: Hierarchies, "Owner references".
func RemoveOwnerReference(ctx context.Context, objs any, opts ...RemovalOption) error {
	return update(ctx, "remove the owner of", objs, opts, removeReference)
}
