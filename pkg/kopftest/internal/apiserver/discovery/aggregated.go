package discovery

import (
	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver/resource"
)

// aggregate returns everything in one document: the core group, or all others.
func aggregate(all []*resource.Resource, isCore bool) *apidiscovery.APIGroupDiscoveryList {
	list := &apidiscovery.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"},
		Items:    []apidiscovery.APIGroupDiscovery{},
	}
	for _, one := range groups(all) {
		if (one.name == "") != isCore {
			continue
		}
		item := apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: one.name}}
		for _, version := range one.versions {
			item.Versions = append(item.Versions, apidiscovery.APIVersionDiscovery{
				Version: version, Freshness: apidiscovery.DiscoveryFreshnessCurrent,
				Resources: describe(schema.GroupVersion{Group: one.name, Version: version}, all),
			})
		}
		list.Items = append(list.Items, item)
	}
	return list
}

func describe(wanted schema.GroupVersion, all []*resource.Resource) []apidiscovery.APIResourceDiscovery {
	var found []apidiscovery.APIResourceDiscovery
	for _, one := range all {
		if one.GroupVersion() != wanted {
			continue
		}
		kind := &metav1.GroupVersionKind{Kind: one.Kind}
		if one.IsCustom() { // built-in resources leave out the version
			kind.Group = one.Group
			kind.Version = one.Version
		}
		made := apidiscovery.APIResourceDiscovery{
			Resource: one.Resource, ResponseKind: kind, Scope: apidiscovery.ScopeCluster, SingularResource: one.Singular,
			Verbs: verbsOf(one), ShortNames: one.ShortNames, Categories: one.Categories,
		}
		if one.Namespaced {
			made.Scope = apidiscovery.ScopeNamespace
		}
		for _, sub := range one.Subresources {
			made.Subresources = append(made.Subresources, apidiscovery.APISubresourceDiscovery{Subresource: sub, ResponseKind: kind, Verbs: subverbsOf(sub)})
		}
		found = append(found, made)
	}
	return found
}
