package apiserver

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver/discovery"
	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver/resource"
)

// maxBody is the size up to which the server accepts requests, as the one of Kubernetes.
const maxBody = 3 << 20

// errNoRoute is the answer to an unknown path.
var errNoRoute = apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{}, "", "404 page not found", 0, true)

// errNoScale tells users that it is not their mistake.
var errNoScale = apierrors.NewGenericServerResponse(http.StatusNotImplemented, "", schema.GroupResource{}, "",
	"the API server of kopftest has no scale subresource for custom resources: use kopftest.Cluster", 0, true)

// request is a request for objects.
type request struct {
	*http.Request
	of          *resource.Resource
	key         types.NamespacedName // without a name for collections
	subresource string
	query       url.Values
}

// serve finds out what a request is about, and answers it.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) error {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch parts[0] {
	case "version":
		return respond(w, http.StatusOK, discovery.Version())
	case "healthz", "livez", "readyz":
		_, err := io.WriteString(w, "ok")
		return err
	case "api", "apis":
		version, rest := split(parts)
		if len(rest) == 0 {
			all := s.catalog.resources()
			for i := range reviews {
				all = append(all, &reviews[i].Resource)
			}
			return discovery.Serve(w, r, parts, all)
		}
		return s.serveObjects(w, r, version, rest)
	default:
		return errNoRoute
	}
}

// split divides the parts of a path into the version of the API and what follows.
func split(parts []string) (version schema.GroupVersion, rest []string) {
	switch {
	case parts[0] == "api" && len(parts) > 2:
		return schema.GroupVersion{Version: parts[1]}, parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		return schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]
	default:
		return version, nil
	}
}

func (s *Server) serveObjects(w http.ResponseWriter, r *http.Request, version schema.GroupVersion, rest []string) error {
	made := &request{Request: r, query: r.URL.Query()}
	plural, ok := made.locate(version, rest)
	if !ok {
		return errNoRoute
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if about := findReview(version.WithResource(plural)); about != nil && r.Method == http.MethodPost {
		return s.answer(w, made, about)
	}
	made.of = s.catalog.find(version.WithResource(plural))
	if made.of == nil {
		return errNoRoute
	}
	if made.subresource != "" && !slices.Contains(made.of.Subresources, made.subresource) {
		if made.of.HasScale && made.subresource == "scale" {
			return errNoScale
		}
		if made.of.IsCustom() {
			return made.notFound() // as if a custom object did not exist
		}
		return errNoRoute
	}
	return s.dispatch(w, made)
}

// locate finds the object of a request, and returns the plural of its resource. It returns
// false if the path is too long.
func (r *request) locate(version schema.GroupVersion, rest []string) (plural string, ok bool) {
	if scoped := len(rest) > 2 && rest[0] == "namespaces"; scoped && (version.Group != "" || !slices.Contains([]string{resource.Status, "finalize"}, rest[2])) {
		r.key.Namespace = rest[1]
		rest = rest[2:]
	}
	if len(rest) > 3 {
		return "", false
	}
	rest = append(rest, "", "")
	r.key.Name = rest[1]
	r.subresource = rest[2]
	return rest[0], true
}

// dispatch calls the verb of a request.
func (s *Server) dispatch(w http.ResponseWriter, r *request) error {
	isObject := r.key.Name != ""
	if r.of.Namespaced && r.key.Namespace == "" && (isObject || r.Method != http.MethodGet) || !r.of.Namespaced && r.key.Namespace != "" {
		return errNoRoute
	}
	switch {
	case r.Method == http.MethodGet && isObject:
		return s.get(w, r)
	case r.Method == http.MethodGet && isTrue(r.query.Get("watch")):
		return s.watch(w, r)
	case r.Method == http.MethodGet:
		return s.list(w, r)
	case r.Method == http.MethodPost && !isObject:
		return s.create(w, r)
	case r.Method == http.MethodPut && isObject:
		return s.update(w, r)
	case r.Method == http.MethodPatch && isObject:
		return s.patch(w, r)
	case r.Method == http.MethodDelete && isObject && r.subresource == "":
		return s.delete(w, r)
	case r.Method == http.MethodDelete && !isObject:
		return s.deleteCollection(w, r)
	default:
		return apierrors.NewMethodNotSupported(r.of.GroupResource(), strings.ToLower(r.Method))
	}
}

func isTrue(value string) bool { return value == "true" || value == "1" }

// body returns the body of a request.
func (r *request) body() ([]byte, error) {
	data, err := io.ReadAll(r.Body)
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, apierrors.NewRequestEntityTooLargeError("limit is 3145728")
	}
	return data, err
}

// isDryRun reports whether nothing shall be stored.
func (r *request) isDryRun() bool { return r.query.Get("dryRun") == "All" }

// manager returns the name of the owner of the written fields.
func (r *request) manager() string {
	if name := r.query.Get("fieldManager"); name != "" {
		return name
	}
	name, _, _ := strings.Cut(r.UserAgent(), "/")
	return name
}
