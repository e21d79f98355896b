package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/kopf-go/kopf/pkg/model/selector"
)

// Client is the one method of client-go's discovery client that Scan needs. The real
// client makes two requests for it, on all supported servers.
type Client interface {
	ServerGroupsAndResourcesWithContext(ctx context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
}

var _ Client = (*discovery.DiscoveryClient)(nil)

// Scan lists all resources of an API server. The Snapshot names the groups that are
// unavailable; an error means that the server itself could not be asked.
func Scan(ctx context.Context, client Client) (Snapshot, error) {
	asked := time.Now()
	groups, lists, err := client.ServerGroupsAndResourcesWithContext(ctx)
	failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if ctx.Err() != nil {
		partial = false // all groups have failed, for the same reason
	}
	if err != nil && !partial {
		return Snapshot{}, fmt.Errorf("the resources of the API server cannot be listed: %w", err)
	}
	resources, err := toResources(lists)
	if err != nil {
		return Snapshot{}, err
	}
	markPreferred(resources, groups)
	return Snapshot{Resources: resources, Failed: failures(failed), Asked: asked}, nil
}

// errNoAnswer explains a stale group version in terms that help a person.
var errNoAnswer = errors.New("the server behind its APIService does not answer")

// failures returns the group versions that are unavailable, with the reasons. It
// leaves out versions that were removed while they were listed.
func failures(failed map[schema.GroupVersion]error) map[schema.GroupVersion]error {
	down := map[schema.GroupVersion]error{}
	for gv, err := range failed {
		var stale discovery.StaleGroupVersionError
		switch {
		case errors.As(err, &stale):
			down[gv] = errNoAnswer
		case !apierrors.IsNotFound(err):
			down[gv] = err
		}
	}
	return down
}

// toResources converts the lists into resources, in order. A list is that of one group version. It
// has subresources as separate items, such as "pods/status"; subresources of unlisted resources, as
// some metrics servers have them, are ignored.
func toResources(lists []*metav1.APIResourceList) ([]selector.Resource, error) {
	var all []selector.Resource
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("the API server offers an API with an invalid group version: %w", err)
		}
		var resources []selector.Resource
		subresources := map[string][]string{}
		for _, item := range list.APIResources {
			if parent, name, isSub := strings.Cut(item.Name, "/"); isSub {
				subresources[parent] = append(subresources[parent], name)
				continue
			}
			resources = append(resources, selector.Resource{
				Group:      gv.Group,
				Version:    gv.Version,
				Plural:     item.Name,
				Kind:       item.Kind,
				Singular:   cmp.Or(item.SingularName, strings.ToLower(item.Kind)), // as in Kopf
				ShortNames: item.ShortNames,
				Categories: item.Categories,
				Namespaced: item.Namespaced,
				Verbs:      item.Verbs,
			})
		}
		for i, r := range resources {
			resources[i].Subresources = subresources[r.Plural]
			resources[i].Status = slices.Contains(subresources[r.Plural], "status")
		}
		all = append(all, resources...)
	}
	slices.SortFunc(all, func(a, b selector.Resource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Plural, b.Plural), cmp.Compare(a.Version, b.Version))
	})
	return all, nil
}

// markPreferred marks one version of every resource: the one that its group prefers
// or, if that lacks the resource, the first one that has it. A group's newest version
// often has few of its resources.
func markPreferred(resources []selector.Resource, groups []*metav1.APIGroup) {
	rank := map[schema.GroupVersion]int{} // by the preference of the server
	for _, group := range groups {
		for i, v := range group.Versions {
			rank[schema.GroupVersion{Group: group.Name, Version: v.Version}] = i + 1
		}
		rank[schema.GroupVersion{Group: group.Name, Version: group.PreferredVersion.Version}] = 0
	}
	best := map[schema.GroupResource]int{}
	for i, r := range resources {
		key := r.GVR().GroupResource()
		other, known := best[key]
		if !known || rank[r.GroupVersion()] < rank[resources[other].GroupVersion()] {
			best[key] = i
		}
	}
	for _, i := range best {
		resources[i].Preferred = true
	}
}
