package peering

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// The API of peering objects. Old clusters have the resources in another group, and some
// have them in both.
const (
	group    = "kopf.dev"
	oldGroup = "zalando.org"
	version  = "v1"
)

// groups returns the API groups, the preferred one first.
func groups() []string { return []string{group, oldGroup} }

// finder finds peering objects in a cluster.
type finder struct {
	lists   resourceLists
	dynamic dynamic.Interface
	manager string // the field manager of the writes; empty: the default of the client
}

func newFinder(config *rest.Config, client *http.Client) (*finder, error) {
	if client == nil {
		var err error
		client, err = rest.HTTPClientFor(config)
		if err != nil {
			return nil, fmt.Errorf("cannot create an HTTP client for the peering: %w", err)
		}
	}
	discoveryClient, err := discovery.NewDiscoveryClientForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("cannot create a discovery client for the peering: %w", err)
	}
	dynamicClient, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client for the peering: %w", err)
	}
	return &finder{lists: newResourceLists(discoveryClient.ServerResourcesForGroupVersionWithContext), dynamic: dynamicClient}, nil
}

// Target names a peering object.
type Target struct {
	Name string
	// Namespace is the namespace of a KopfPeering. If it is empty, the object is a
	// ClusterKopfPeering.
	Namespace string
}

func (t Target) kind() string {
	if t.Namespace == "" {
		return "ClusterKopfPeering"
	}
	return "KopfPeering"
}

func (t Target) plural() string {
	if t.Namespace == "" {
		return "clusterkopfpeerings"
	}
	return "kopfpeerings"
}

func (t Target) notFound(group string, noResource bool) error {
	return &NotFoundError{Group: group, Kind: t.kind(), Namespace: t.Namespace, Name: t.Name, NoResource: noResource}
}

// findFunc finds the resource of a peering object in an API group. The object itself need
// not exist. If the group does not have the resource, it returns a NotFoundError.
type findFunc func(ctx context.Context, target Target, group string) (peeringAPI, error)

// find is a findFunc.
func (f *finder) find(ctx context.Context, target Target, group string) (peeringAPI, error) {
	gv := schema.GroupVersion{Group: group, Version: version}
	resources, err := f.lists.of(ctx, gv.String())
	if err != nil {
		return nil, fmt.Errorf("cannot find out whether the cluster has the resource of %s in %s: %w", target.kind(), group, err)
	}
	has := func(name string) bool {
		return slices.ContainsFunc(resources, func(r metav1.APIResource) bool {
			return r.Name == name && r.Namespaced == (target.Namespace != "")
		})
	}
	if !has(target.plural()) {
		return nil, target.notFound(group, true)
	}
	found := &peeringObject{target: target, group: group, manager: f.manager, resource: f.dynamic.Resource(gv.WithResource(target.plural())).Namespace(target.Namespace)}
	if has(target.plural() + "/status") {
		found.subresources = []string{"status"}
	}
	return found, nil
}
