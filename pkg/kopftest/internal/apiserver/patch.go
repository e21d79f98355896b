package apiserver

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver/resource"
)

// patchType returns the format of a patch.
func (r *request) patchType() types.PatchType {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return types.PatchType(media)
}

// isApply reports whether the request is a server-side apply.
func (r *request) isApply() bool {
	return r.Method == http.MethodPatch && r.patchType() == types.ApplyYAMLPatchType
}

// patch changes an object.
func (s *Server) patch(w http.ResponseWriter, r *request) error {
	data, err := r.body()
	if err != nil {
		return err
	}
	if r.isApply() {
		return s.apply(w, r, data)
	}
	format := r.patchType()
	isStrategic := format == types.StrategicMergePatchType && r.of.StrategicType() != nil
	if format != types.JSONPatchType && format != types.MergePatchType && !isStrategic {
		return apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, r.Method, r.of.GroupResource(), r.key.Name,
			"the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml", 0, true)
	}
	stored, err := s.writer.write(w, r, func(current *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		return r.patched(current, format, data)
	})
	if err != nil {
		return err
	}
	return s.respondObject(w, r, http.StatusOK, stored)
}

// patched returns the object with a patch applied.
func (r *request) patched(current *unstructured.Unstructured, format types.PatchType, data []byte) (*unstructured.Unstructured, error) {
	owned := current
	if format == types.MergePatchType && !bytes.Contains(data, []byte("managedFields")) {
		owned = resource.WithoutOwners(current) // most patches leave them as they are
	}
	before, err := json.Marshal(owned.Object)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	var after []byte
	switch format {
	case types.JSONPatchType:
		decoded, err := jsonpatch.DecodePatch(data)
		if err != nil {
			return nil, apierrors.NewBadRequest("the patch cannot be read: " + err.Error())
		}
		after, err = decoded.Apply(before)
		if err != nil {
			return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, r.key.Name, err.Error(), 0, false)
		}
	case types.StrategicMergePatchType:
		after, err = strategicpatch.StrategicMergePatch(before, data, r.of.StrategicType())
	default:
		after, err = jsonpatch.MergePatch(before, data)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	updated := &unstructured.Unstructured{}
	if err := json.Unmarshal(after, &updated.Object); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if metadata, ok := updated.Object["metadata"].(map[string]any); ok && owned != current && resource.OwnersOf(current) != nil {
		metadata["managedFields"] = resource.OwnersOf(current)
	}

	// A patch does not change the identity of an object.
	if _, ok := updated.Object["metadata"].(map[string]any); !ok {
		return nil, apierrors.NewBadRequest("the patch removes the metadata")
	}
	if updated.GroupVersionKind() != current.GroupVersionKind() {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the patch changes the kind to %s", updated.GroupVersionKind()))
	}
	if updated.GetName() != current.GetName() {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", updated.GetName(), current.GetName()))
	}
	return updated, nil
}

// apply merges the fields of one owner, and creates the object if it does not exist.
func (s *Server) apply(w http.ResponseWriter, r *request, data []byte) error {
	applied := &unstructured.Unstructured{}
	text, err := yaml.YAMLToJSON(data)
	if err == nil {
		err = json.Unmarshal(text, &applied.Object)
	}
	if err != nil || applied.Object == nil {
		return apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	if r.query.Get("fieldManager") == "" {
		return apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: "PatchOptions"}, "", field.ErrorList{
			field.Required(field.NewPath("fieldManager"), "is required for apply patch"),
		})
	}
	if err := r.checkKind(applied); err != nil {
		return err
	}
	if applied.GetNamespace() == "" && r.key.Namespace != "" {
		applied.SetNamespace(r.key.Namespace)
	}
	stored, err := s.writer.write(w, r, func(current *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		return r.merged(current, applied)
	})
	code := http.StatusOK
	if apierrors.IsNotFound(err) && r.subresource == "" {
		// Create the object. Like the real server, this refuses a uid, but ignores a version, which is
		// a precondition only for an object that exists.
		if applied.GetUID() != "" {
			return r.conflict()
		}
		applied.SetResourceVersion("")
		object, merging := r.merged(r.empty(), applied)
		if merging != nil {
			return merging
		}
		stored, err = s.writer.insert(r.Context(), w, r, object)
		code = http.StatusCreated
	}
	if err != nil {
		return err
	}
	return s.respondObject(w, r, code, stored)
}

// merged returns the current object with the applied fields.
func (r *request) merged(current, applied *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	result, err := r.of.FieldManager(r.subresource).Apply(current.DeepCopy(), applied.DeepCopy(), r.query.Get("fieldManager"), isTrue(r.query.Get("force")))
	if err != nil {
		var known apierrors.APIStatus
		if errors.As(err, &known) {
			return nil, err
		}
		return nil, apierrors.NewInternalError(err)
	}
	updated, ok := result.(*unstructured.Unstructured)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("%T is not unstructured", result))
	}
	if version := applied.GetResourceVersion(); version != "" {
		updated.SetResourceVersion(version)
	}
	return updated, nil
}
