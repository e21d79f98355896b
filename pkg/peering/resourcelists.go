package peering

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// listValidity is how long the list of resources counts as current: the members of many
// namespaces ask for it at the same time.
const listValidity = time.Second

// resourceLists returns the resources of API groups. It is safe for concurrent use.
type resourceLists struct {
	fetch func(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)

	// turn has an item while a caller fetches a list. The others wait for it only as long as their contexts allow.
	turn  chan struct{}
	known map[string]resourceList // by group version
}

type resourceList struct {
	resources []metav1.APIResource
	at        time.Time
}

func newResourceLists(fetch func(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)) resourceLists {
	return resourceLists{fetch: fetch, turn: make(chan struct{}, 1), known: map[string]resourceList{}}
}

// of returns the resources of a group version, none if the cluster does not have it.
func (l *resourceLists) of(ctx context.Context, groupVersion string) ([]metav1.APIResource, error) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if known, ok := l.known[groupVersion]; ok && time.Since(known.at) < listValidity {
		return known.resources, nil
	}
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := l.fetch(limited, groupVersion)
	found := resourceList{at: time.Now()}
	switch {
	case err == nil:
		found.resources = list.APIResources
	case !apierrors.IsNotFound(err):
		return nil, err
	}
	l.known[groupVersion] = found
	return found.resources, nil
}
