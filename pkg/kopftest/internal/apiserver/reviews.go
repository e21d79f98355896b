package apiserver

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver/resource"
)

// review is a resource that only answers questions.
type review struct {
	resource.Resource
	status func(*Server, *unstructured.Unstructured) map[string]any
}

// reviews are sorted as in discovery.
var reviews = []review{
	reviewOf("authentication.k8s.io", "SelfSubjectReview", (*Server).selfStatus),
	reviewOf("authentication.k8s.io", "TokenReview", (*Server).userStatus),
	reviewOf("authorization.k8s.io", "LocalSubjectAccessReview", (*Server).accessStatus),
	reviewOf("authorization.k8s.io", "SelfSubjectAccessReview", (*Server).accessStatus),
	reviewOf("authorization.k8s.io", "SelfSubjectRulesReview", (*Server).rulesStatus),
	reviewOf("authorization.k8s.io", "SubjectAccessReview", (*Server).accessStatus),
}

func reviewOf(group, kind string, status func(*Server, *unstructured.Unstructured) map[string]any) review {
	singular := strings.ToLower(kind)
	return review{status: status, Resource: resource.Resource{
		GroupVersionResource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: singular + "s"},
		Kind:                 kind, Singular: singular, Namespaced: strings.HasPrefix(kind, "Local"),
	}}
}

// findReview returns the review of a resource, or nil.
func findReview(wanted schema.GroupVersionResource) *review {
	i := slices.IndexFunc(reviews, func(r review) bool { return r.GroupVersionResource == wanted })
	if i < 0 {
		return nil
	}
	return &reviews[i]
}

// answer answers a question.
func (s *Server) answer(w http.ResponseWriter, r *request, about *review) error {
	data, err := r.body()
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &object.Object); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	object.Object["status"] = about.status(s, object)
	return respond(w, http.StatusCreated, object.Object)
}

// accessStatus reports whether an access is allowed.
func (s *Server) accessStatus(object *unstructured.Unstructured) map[string]any {
	allowed := true
	if about, found, err := unstructured.NestedStringMap(object.Object, "spec", "resourceAttributes"); err == nil && found && s.options.Allowed != nil {
		allowed = s.options.Allowed(about["verb"], schema.GroupResource{Group: about["group"], Resource: about["resource"]}, about["namespace"])
	}
	return map[string]any{"allowed": allowed}
}

// rulesStatus says that everything is allowed.
func (s *Server) rulesStatus(*unstructured.Unstructured) map[string]any {
	all := []any{"*"}
	return map[string]any{
		"resourceRules":    []any{map[string]any{"verbs": all, "apiGroups": all, "resources": all}},
		"nonResourceRules": []any{map[string]any{"verbs": all, "nonResourceURLs": all}},
		"incomplete":       false,
	}
}

// user is the only user.
var user = map[string]any{"username": "kopftest", "groups": []any{"system:masters", "system:authenticated"}}

func (s *Server) userStatus(*unstructured.Unstructured) map[string]any {
	return map[string]any{"authenticated": true, "user": user}
}

func (s *Server) selfStatus(*unstructured.Unstructured) map[string]any {
	return map[string]any{"userInfo": user}
}
