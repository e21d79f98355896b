package deployment

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/kopf-go/kopf/internal/builtin"
	"github.com/kopf-go/kopf/internal/manifests"
	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
)

// Known is what is known about the resources of a program without a cluster.
type Known struct {
	discovery.Snapshot

	// Assumed are the resources without a definition. They are assumed to be namespaced, and to have
	// a status subresource.
	Assumed []selector.Resource
}

// UnknownError lists the selectors that only a cluster, or further definitions, can resolve.
type UnknownError struct{ problems []string }

func (e *UnknownError) Error() string {
	return "no cluster is asked, and it is unknown which resources these handlers are for:\n  " + strings.Join(e.problems, "\n  ") +
		"\nGive their definitions by --crds, name the group, the version, and the plural in the program, or ask the cluster by --discover"
}

// Know finds out which resources a program is for, from definitions. If a cluster was asked, its
// resources are known, too.
func Know(program inspect.Program, definitions []manifests.Definition, cluster discovery.Snapshot) (Known, error) {
	var k Known
	for _, definition := range definitions {
		served, err := servedBy(definition)
		if err != nil {
			return k, err
		}
		k.add(served...)
	}
	if len(cluster.Resources) > 0 { // what it does not serve is said with the roles
		k.Failed = cluster.Failed
		k.add(cluster.Resources...)
		k.sort()
		return k, nil
	}
	k.add(everywhere()...)
	var problems []string
	for _, u := range usesOf(program) {
		_, err := u.selector.Resolve(k.Resources)
		if err == nil && u.selector.Specific() {
			continue
		}
		problem := k.assume(u, err)
		if problem != "" && !slices.Contains(problems, problem) {
			problems = append(problems, problem)
		}
	}
	k.sort()
	if len(problems) > 0 {
		return k, &UnknownError{problems}
	}
	return k, nil
}

// add adds resources, unless they are known already.
func (k *Known) add(resources ...selector.Resource) {
	for _, r := range resources {
		if !slices.ContainsFunc(k.Resources, func(known selector.Resource) bool { return known.GVR() == r.GVR() }) {
			k.Resources = append(k.Resources, r)
		}
	}
}

// sort gives the resources the order of a snapshot.
func (k *Known) sort() {
	slices.SortFunc(k.Resources, func(a, b selector.Resource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Plural, b.Plural), cmp.Compare(a.Version, b.Version))
	})
}

// assume adds the resource of a selector that is not known, or returns why it cannot. The error is that of the
// selector.
func (k *Known) assume(u use, err error) string {
	var ambiguous *selector.AmbiguousError
	if errors.As(err, &ambiguous) {
		return fmt.Sprintf("%s: %v", u.place, err)
	}
	if !u.selector.Specific() {
		return fmt.Sprintf("%s: %q selects what a cluster serves", u.place, u.selector)
	}
	gv, name, ok := u.selector.Complete()
	if !ok {
		return fmt.Sprintf("%s: %q", u.place, u.selector)
	}
	r := selector.Resource{
		Group: gv.Group, Version: gv.Version, Plural: name, Singular: name,
		Namespaced: true, Preferred: true, Status: true, Subresources: []string{"status"}, Verbs: allVerbs,
	}
	if strings.ToLower(name) != name { // a kind, such as that of a Go type
		plural, singular := meta.UnsafeGuessKindToResource(gv.WithKind(name))
		r.Kind = name
		r.Plural = plural.Resource
		r.Singular = singular.Resource
	}
	k.Resources = append(k.Resources, r)
	k.Assumed = append(k.Assumed, r)
	return ""
}

// use is a selector of a program, and the place where it is declared.
type use struct {
	selector selector.Selector
	place    string
}

// usesOf returns the selectors whose resources matter for the roles. Those of admission handlers do not:
// the API servers call them.
func usesOf(program inspect.Program) []use {
	var uses []use
	for _, h := range program.Handlers.Watching() {
		uses = append(uses, use{h.Selector, h.DeclaredAt})
		for _, children := range h.ChildSelectors() {
			uses = append(uses, use{children, h.DeclaredAt})
		}
	}
	for _, need := range program.Needs {
		uses = append(uses, use{need.Selector, need.DeclaredAt})
	}
	for _, d := range program.Conversions {
		uses = append(uses, use{d.Selector, d.DeclaredAt})
	}
	return uses
}

// allVerbs are the verbs of a resource that Kubernetes stores.
var allVerbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

// servedBy returns the served versions of a custom resource.
func servedBy(definition manifests.Definition) ([]selector.Resource, error) {
	var typed apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(definition.Object, &typed); err != nil {
		return nil, fmt.Errorf("%s: %w", definition.Path, err)
	}
	names := typed.Spec.Names
	var served []selector.Resource
	best := ""
	for _, v := range typed.Spec.Versions {
		if !v.Served {
			continue
		}
		if best == "" || version.CompareKubeAwareVersionStrings(v.Name, best) > 0 {
			best = v.Name
		}
		r := selector.Resource{
			Group: typed.Spec.Group, Version: v.Name, Plural: names.Plural, Kind: names.Kind,
			Singular: cmp.Or(names.Singular, strings.ToLower(names.Kind)), ShortNames: names.ShortNames, Categories: names.Categories,
			Namespaced: typed.Spec.Scope == apiextensionsv1.NamespaceScoped, Verbs: allVerbs,
		}
		if sub := v.Subresources; sub != nil && sub.Status != nil {
			r.Status = true
			r.Subresources = append(r.Subresources, "status")
		}
		if sub := v.Subresources; sub != nil && sub.Scale != nil {
			r.Subresources = append(r.Subresources, "scale")
		}
		served = append(served, r)
	}
	for i := range served {
		served[i].Preferred = served[i].Version == best
	}
	return served, nil
}

// everywhere returns the resources that need no definition: built-in ones, and those by which operators find each
// other. A cluster without the latter gets a rule that is not used.
func everywhere() []selector.Resource {
	var all []selector.Resource
	for _, r := range builtin.Resources() {
		all = append(all, selector.Resource{
			Group: r.Version.Group, Version: r.Version.Version, Plural: r.Plural, Kind: r.Kind, Singular: strings.ToLower(r.Kind),
			ShortNames: r.ShortNames, Categories: r.Categories, Namespaced: r.Namespaced, Preferred: true,
			Status: slices.Contains(r.Subresources, "status"), Subresources: r.Subresources, Verbs: allVerbs,
		})
	}
	peering := schema.GroupVersion{Group: "kopf.dev", Version: "v1"}
	return append(all,
		selector.Resource{Group: peering.Group, Version: peering.Version, Plural: "clusterkopfpeerings", Kind: "ClusterKopfPeering", Singular: "clusterkopfpeering", Preferred: true, Verbs: allVerbs},
		selector.Resource{Group: peering.Group, Version: peering.Version, Plural: "kopfpeerings", Kind: "KopfPeering", Singular: "kopfpeering", Namespaced: true, Preferred: true, Verbs: allVerbs},
	)
}
