package peering

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// The API of peering objects. Old clusters have the resources in another group, which is
// used if the first group does not have the object.
const (
	group    = "kopf.dev"
	oldGroup = "zalando.org"
	version  = "v1"
)

// finder finds peering objects in a cluster.
type finder struct {
	discovery discovery.DiscoveryInterfaceWithContext
	dynamic   dynamic.Interface
}

func newFinder(config *rest.Config, client *http.Client) (*finder, error) {
	if client == nil {
		var err error
		if client, err = rest.HTTPClientFor(config); err != nil {
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
	return &finder{discoveryClient, dynamicClient}, nil
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

func (t Target) notFound(noResource bool) error {
	return &NotFoundError{Kind: t.kind(), Namespace: t.Namespace, Name: t.Name, NoResource: noResource}
}

// find finds the resource of a peering object. The object itself need not exist. If the
// cluster has the resource in both groups, find returns the group that has the object.
func (f *finder) find(ctx context.Context, target Target) (peeringAPI, error) {
	var candidates []*peeringObject
	for _, group := range []string{group, oldGroup} {
		found, err := f.findInGroup(ctx, target, schema.GroupVersion{Group: group, Version: version})
		switch {
		case err != nil:
			return nil, fmt.Errorf("cannot find out whether the cluster has the resource of %s: %w", target.kind(), err)
		case found != nil:
			candidates = append(candidates, found)
		}
	}
	if len(candidates) == 0 {
		return nil, target.notFound(true)
	}
	for _, candidate := range candidates[1:] {
		if _, err := candidates[0].read(ctx); !IsNotFound(err) {
			break
		}
		if _, err := candidate.read(ctx); err == nil {
			return candidate, nil
		}
	}
	return candidates[0], nil
}

// findInGroup returns nil if the group does not have the resource.
func (f *finder) findInGroup(ctx context.Context, target Target, gv schema.GroupVersion) (*peeringObject, error) {
	list, err := f.discovery.ServerResourcesForGroupVersionWithContext(ctx, gv.String())
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // the group does not exist, which is no error
	}
	if err != nil {
		return nil, err
	}
	has := func(name string) bool {
		return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool {
			return r.Name == name && r.Namespaced == (target.Namespace != "")
		})
	}
	if !has(target.plural()) {
		return nil, nil //nolint:nilnil // as above
	}
	found := &peeringObject{target: target, resource: f.dynamic.Resource(gv.WithResource(target.plural())).Namespace(target.Namespace)}
	if has(target.plural() + "/status") {
		found.subresources = []string{"status"}
	}
	return found, nil
}
