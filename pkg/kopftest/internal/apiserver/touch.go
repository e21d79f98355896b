package apiserver

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Touch gives the object at a path a new version, as a write of another client does.
func (s *Server) Touch(path string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if parts[0] != "api" && parts[0] != "apis" {
		return
	}
	version, rest := split(parts)
	if len(rest) == 0 {
		return
	}
	var found request
	plural, _ := found.locate(version, rest)
	of := s.catalog.find(version.WithResource(plural))
	if of == nil {
		return
	}
	resource := of.Stored.GroupResource()
	if stored := s.store.Get(resource, found.key); stored != nil {
		_, _ = s.store.Commit(resource, found.key, stored, stored) // others may have changed it, too
	}
}

// Objects returns all objects, except events and leases. The caller must not modify them.
func (s *Server) Objects() []*unstructured.Unstructured {
	return s.store.All(func(of schema.GroupResource) bool { return of.Resource != "events" && of.Resource != "leases" })
}
