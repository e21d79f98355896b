package selector

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is a resource of a cluster in one of its versions, as the API server
// presents it. It is a value that nobody changes after it was made; the lists in
// it are shared. Use GVR as the key in maps and comparisons.
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
	// Preferred is the version that is meant when none is named: the one that
	// the server prefers, or the best of those that have the resource.
	Preferred bool
	// Status tells that the status is a subresource, and written separately.
	Status       bool
	Subresources []string // "status", "scale"
	// Verbs are what the server can do with the resource ("list", "watch"),
	// whether or not this operator is permitted to ask for it.
	Verbs []string
}

// GroupVersion is the group and the version.
func (r Resource) GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: r.Group, Version: r.Version}
}

// GVR identifies the resource in requests.
func (r Resource) GVR() schema.GroupVersionResource { return r.GroupVersion().WithResource(r.Plural) }

// GVK identifies the resource in manifests.
func (r Resource) GVK() schema.GroupVersionKind { return r.GroupVersion().WithKind(r.Kind) }

// String is the name that New takes for exactly this resource:
// "kopfexamples.v1.kopf.dev", and "pods.v1" for the core group.
func (r Resource) String() string { return dotted(r.Plural, r.GroupVersion()) }

// Can reports whether the server offers all of the verbs for the resource.
func (r Resource) Can(verbs ...string) bool {
	return !slices.ContainsFunc(verbs, func(verb string) bool { return !slices.Contains(r.Verbs, verb) })
}

// names are all names by which the resource can be called.
func (r Resource) names() []string {
	return append([]string{r.Plural, r.Singular, r.Kind}, r.ShortNames...)
}

// isEvent reports whether these are Kubernetes events; the two groups that have
// them are two views of the same objects.
func (r Resource) isEvent() bool {
	return r.Plural == "events" && (r.Group == "" || r.Group == "events.k8s.io")
}

// dotted is the notation of kubectl: the name, the version and the group.
func dotted(name string, gv schema.GroupVersion) string {
	if gv.Group == "" {
		return name + "." + gv.Version
	}
	return name + "." + gv.Version + "." + gv.Group
}
