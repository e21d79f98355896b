package rbac

import (
	"net/http"
	"strings"
)

// Permission is the permission that one request needs.
type Permission struct {
	Verb      string // "get", "watch", "deletecollection"
	Group     string
	Resource  string // plural, with the subresource: "pods/exec"
	Namespace string // empty for the cluster, or for all namespaces
	Name      string // empty for lists and creations
}

// Of returns the permission that a request to an API server needs. It reports false for requests
// that are not about resources, such as those of discovery.
func Of(request *http.Request) (Permission, bool) {
	// The address of a server can have a path in front: it ends with the last "/api" or "/apis"
	// that is followed by a version.
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	for i, part := range parts {
		rest := parts[i+1:]
		switch {
		case part == "api" && len(rest) >= 2:
			return resourceOf(request, "", rest[1:])
		case part == "apis" && len(rest) >= 3:
			return resourceOf(request, rest[0], rest[2:])
		}
	}
	return Permission{}, false
}

// resourceOf parses the part of a path behind the version.
func resourceOf(request *http.Request, group string, parts []string) (Permission, bool) {
	p := Permission{Group: group}
	if parts[0] == "namespaces" && len(parts) >= 3 && parts[2] != "status" && parts[2] != "finalize" {
		p.Namespace = parts[1]
		parts = parts[2:]
	}
	p.Resource = parts[0]
	if len(parts) > 1 {
		p.Name = parts[1]
	}
	if len(parts) > 2 {
		p.Resource += "/" + parts[2]
	}
	query := request.URL.Query()
	if name, ok := strings.CutPrefix(query.Get("fieldSelector"), "metadata.name="); ok && p.Name == "" && !strings.ContainsAny(name, ",=") {
		p.Name = name
	}
	p.Verb = verbOf(request.Method, len(parts) > 1, query.Get("watch"))
	return p, p.Verb != ""
}

// verbOf returns the verb of a request.
func verbOf(method string, named bool, watch string) string {
	switch method {
	case http.MethodGet, http.MethodHead:
		switch {
		case watch == "true" || watch == "1":
			return "watch"
		case named:
			return "get"
		default:
			return "list"
		}
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if named {
			return "delete"
		}
		return "deletecollection"
	default:
		return ""
	}
}
