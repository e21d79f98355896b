package apiserver

import (
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver/resource"
	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver/store"
)

// catalog contains the served resources. Custom resources follow their definitions.
type catalog struct {
	store   *store.Store
	builtin []*resource.Resource

	mu          sync.RWMutex                    // held while a definition and its resource change
	definitions map[string][]*resource.Resource // by the name of the custom resource definition
}

// resources returns all served resources.
func (c *catalog) resources() []*resource.Resource {
	c.mu.RLock()
	defer c.mu.RUnlock()
	found := slices.Clone(c.builtin)
	for _, of := range c.definitions {
		found = append(found, of...)
	}
	slices.SortStableFunc(found, func(a, b *resource.Resource) int {
		return strings.Compare(a.Group+"/"+a.Resource, b.Group+"/"+b.Resource)
	})
	return found
}

// find returns a served resource, or nil.
func (c *catalog) find(wanted schema.GroupVersionResource) *resource.Resource {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, one := range c.builtin {
		if one.GroupVersionResource == wanted {
			return one
		}
	}
	for _, one := range c.definitions[wanted.Resource+"."+wanted.Group] {
		if one.GroupVersionResource == wanted {
			return one
		}
	}
	return nil
}

// defined returns the versions of a custom resource.
func (c *catalog) defined(name string) []*resource.Resource {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.definitions[name]
}

// commitDefinition stores or removes a definition, and serves its resource accordingly.
func (c *catalog) commitDefinition(key types.NamespacedName, stored, updated *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	var served []*resource.Resource
	if updated != nil {
		definition, err := resource.DefinitionOf(updated)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		served, err = resource.Custom(definition)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		if updated.GetDeletionTimestamp() != nil {
			// It waits for the end of its objects. Other servers share the resources.
			served = slices.Clone(served)
			for i, one := range served {
				ending := *one
				ending.Terminating = true
				served[i] = &ending
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	result, err := c.store.Commit(definitions, key, stored, updated)
	if err == nil {
		c.definitions[key.Name] = served
	}
	return result, err
}

// hasInstances reports whether a request is about a definition that has objects.
func (c *catalog) hasInstances(r *request) bool {
	if r.of.Stored.GroupResource() != definitions {
		return false
	}
	objects, _, err := c.store.List(schema.ParseGroupResource(r.key.Name), 0)
	return err == nil && len(objects) > 0
}

// finishDefinition removes a deleted definition after its last object.
func (c *catalog) finishDefinition(of schema.GroupResource) {
	key := types.NamespacedName{Name: of.String()}
	stored := c.store.Get(definitions, key)
	if stored == nil || stored.GetDeletionTimestamp() == nil || len(stored.GetFinalizers()) > 0 {
		return
	}
	if objects, _, err := c.store.List(of, 0); err == nil && len(objects) == 0 {
		_, _ = c.commitDefinition(key, stored, nil) // others may have removed it
	}
}
