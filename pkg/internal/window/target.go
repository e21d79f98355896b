package window

import (
	"net/http"
	"strings"
)

// resource names a kind of objects. It is empty for requests about none, such as discovery.
type resource struct{ group, name string }

// clone returns a copy that does not keep the path of a request.
func (r resource) clone() resource {
	return resource{strings.Clone(r.group), strings.Clone(r.name)}
}

// verb says what a request does. Subresources have verbs of their own: those of the status pass other
// webhooks.
type verb int

const (
	getting verb = iota
	listing
	creating
	updating
	patching
	deleting
	ofSubresources // is added to the others
	verbs          = 2 * ofSubresources
)

// target describes a request.
type target struct {
	resource
	verb       verb
	isEviction bool
}

// maxSegments is more than any path of a resource has, behind the path of a server with one.
const maxSegments = 16

// targetOf returns the target of a request, and whether it waits in the window. What lasts does not:
// the API server does not count it either. What keeps the operator alive does not: leases, and the
// objects of peerings.
func targetOf(request *http.Request) (of target, waits bool) {
	var segments [maxSegments]string
	group, rest := resourcePath(split(request.URL.Path, segments[:0]))
	of.verb = verbOf(request.Method, len(rest) > 1)
	if len(rest) == 0 {
		return of, true
	}
	of.resource = resource{group, rest[0]}
	if len(rest) > 2 {
		switch rest[2] {
		case "attach", "exec", "log", "portforward", "proxy": // as for the API server
			return of, false
		case "eviction":
			of.isEviction = true
		}
		of.verb += ofSubresources
	}
	switch of.resource {
	case resource{"coordination.k8s.io", "leases"},
		resource{"kopf.dev", "clusterkopfpeerings"}, resource{"kopf.dev", "kopfpeerings"},
		resource{"zalando.org", "clusterkopfpeerings"}, resource{"zalando.org", "kopfpeerings"}:
		return of, false
	}
	return of, !isWatch(request)
}

// isWatch reports whether a request is a watch.
func isWatch(request *http.Request) bool {
	if request.Method != http.MethodGet || !strings.Contains(request.URL.RawQuery, "watch=") {
		return false
	}
	value := request.URL.Query().Get("watch")
	return value == "true" || value == "1"
}

// split appends the segments of a path, except those that are too many.
func split(path string, segments []string) []string {
	for path = strings.Trim(path, "/"); path != "" && len(segments) < cap(segments); {
		var segment string
		segment, path, _ = strings.Cut(path, "/")
		segments = append(segments, segment)
	}
	return segments
}

// resourcePath returns the group, and the part of the path from the resource on, without the
// namespace. It is empty if the path is about no resource.
func resourcePath(segments []string) (group string, rest []string) {
	for i, segment := range segments {
		behind := segments[i+1:]
		switch {
		case segment == "api" && len(behind) >= 2:
			rest = behind[1:]
		case segment == "apis" && len(behind) >= 3:
			group = behind[0]
			rest = behind[2:]
		default:
			continue
		}
		if rest[0] == "namespaces" && len(rest) > 2 && rest[2] != "status" && rest[2] != "finalize" {
			rest = rest[2:]
		}
		return group, rest
	}
	return "", nil
}

// verbOf returns the verb of a request, about one object with a name or about many.
func verbOf(method string, named bool) verb {
	switch method {
	case http.MethodPost:
		return creating
	case http.MethodPut:
		return updating
	case http.MethodPatch:
		return patching
	case http.MethodDelete:
		return deleting
	}
	if named {
		return getting
	}
	return listing
}
