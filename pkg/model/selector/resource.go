package selector

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is a resource of a cluster in one of its versions, as the API server offers
// it. Do not modify it: its lists are shared. Use GVR as the key in maps and comparisons.
//
// Specification: the class Resource.
type Resource struct {
	Group      string // "kopf.dev"; empty for the core group
	Version    string // "v1"
	Plural     string // "kopfexamples", as in URLs
	Kind       string // "KopfExample", as in manifests
	Singular   string // "kopfexample"; some servers leave it empty
	ShortNames []string
	Categories []string

	Namespaced bool
	// Preferred marks the version that is used when none is specified: the version
	// that the server prefers, or otherwise the best version that has the resource.
	Preferred bool
	// Status means that the status is a subresource that is written separately.
	Status       bool
	Subresources []string // "status", "scale"
	// Verbs lists what the server can do with the resource ("list", "watch"), whether
	// or not this operator has permission.
	Verbs []string
}

// GroupVersion returns the group and the version.
func (r Resource) GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: r.Group, Version: r.Version}
}

// GVR returns the identifier of the resource in requests.
func (r Resource) GVR() schema.GroupVersionResource { return r.GroupVersion().WithResource(r.Plural) }

// GVK returns the identifier of the resource in manifests.
func (r Resource) GVK() schema.GroupVersionKind { return r.GroupVersion().WithKind(r.Kind) }

// String returns the name that New accepts for exactly this resource:
// "kopfexamples.v1.kopf.dev", or "pods.v1" in the core group.
func (r Resource) String() string { return dottedName(r.Plural, r.GroupVersion()) }

// Can reports whether the server supports all of the verbs for the resource.
func (r Resource) Can(verbs ...string) bool {
	return !slices.ContainsFunc(verbs, func(verb string) bool { return !slices.Contains(r.Verbs, verb) })
}

// names returns all names of the resource.
func (r Resource) names() []string {
	return append([]string{r.Plural, r.Singular, r.Kind}, r.ShortNames...)
}

// isEvent reports whether the resource contains Kubernetes events. The two groups that
// have them are two views of the same objects.
func (r Resource) isEvent() bool {
	return r.Plural == "events" && (r.Group == "" || r.Group == "events.k8s.io")
}

// dottedName returns the notation of kubectl: the name, the version, and the group.
func dottedName(name string, gv schema.GroupVersion) string {
	if gv.Group == "" {
		return name + "." + gv.Version
	}
	return name + "." + gv.Version + "." + gv.Group
}
