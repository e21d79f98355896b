package apiserver

import (
	"encoding/json"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// reviews are the resources that only answer questions.
var reviews = map[schema.GroupVersionResource]func(*Server, *unstructured.Unstructured) map[string]any{
	authorization("selfsubjectaccessreviews"):                                       (*Server).accessStatus,
	authorization("subjectaccessreviews"):                                           (*Server).accessStatus,
	authorization("localsubjectaccessreviews"):                                      (*Server).accessStatus,
	authorization("selfsubjectrulesreviews"):                                        (*Server).rulesStatus,
	{Group: "authentication.k8s.io", Version: "v1", Resource: "tokenreviews"}:       (*Server).userStatus,
	{Group: "authentication.k8s.io", Version: "v1", Resource: "selfsubjectreviews"}: (*Server).selfStatus,
}

func authorization(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: resource}
}

// review answers a question.
func (s *Server) review(w http.ResponseWriter, r *request, status func(*Server, *unstructured.Unstructured) map[string]any) error {
	data, err := r.body()
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &object.Object); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	object.Object["status"] = status(s, object)
	return respond(w, http.StatusCreated, object.Object)
}

// accessStatus says whether an access is allowed.
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
