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

// The API of the peering objects. Old clusters have the resources in another
// group, which is used where the first one has no such object.
const (
	group    = "kopf.dev"
	oldGroup = "zalando.org"
	version  = "v1"
)

// finder finds peering objects.
type finder struct {
	discovery discovery.DiscoveryInterfaceWithContext
	dynamic   dynamic.Interface
}

func newFinder(config *rest.Config, client *http.Client) (*finder, error) {
	if client == nil {
		var err error
		if client, err = rest.HTTPClientFor(config); err != nil {
			return nil, fmt.Errorf("the cluster of the peering cannot be reached: %w", err)
		}
	}
	discovering, err := discovery.NewDiscoveryClientForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("the cluster of the peering cannot be asked for its resources: %w", err)
	}
	reading, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("the cluster of the peering cannot be reached: %w", err)
	}
	return &finder{discovering, reading}, nil
}

// Target names a peering object.
type Target struct {
	Name string
	// Namespace is that of a KopfPeering. Empty: it is a ClusterKopfPeering.
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

func (t Target) notFound(undefined bool) error {
	return &NotFoundError{Kind: t.kind(), Namespace: t.Namespace, Name: t.Name, NoResource: undefined}
}

// find finds the resource of a peering object. The object itself need not be
// there. If the cluster has the resource in both groups, it is the one in which
// the object is.
func (c *finder) find(ctx context.Context, target Target) (peeringAPI, error) {
	var candidates []*peeringObject
	for _, group := range []string{group, oldGroup} {
		found, err := c.findInGroup(ctx, target, schema.GroupVersion{Group: group, Version: version})
		switch {
		case err != nil:
			return nil, fmt.Errorf("it is not known whether the cluster has the resource of %s: %w", target.kind(), err)
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

// findInGroup is what the group has of it; nil if that has nothing.
func (c *finder) findInGroup(ctx context.Context, target Target, gv schema.GroupVersion) (*peeringObject, error) {
	list, err := c.discovery.ServerResourcesForGroupVersionWithContext(ctx, gv.String())
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is no such group, and that is no error
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
	found := &peeringObject{target: target, resource: c.dynamic.Resource(gv.WithResource(target.plural())).Namespace(target.Namespace)}
	if has(target.plural() + "/status") {
		found.subresources = []string{"status"}
	}
	return found, nil
}
