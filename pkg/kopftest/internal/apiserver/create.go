package apiserver

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver/store"
	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver/webhook"
)

// create stores a new object.
func (s *Server) create(w http.ResponseWriter, r *request) error {
	object, err := r.decode()
	if err != nil {
		return err
	}
	stored, err := s.writer.insert(r.Context(), w, r, object)
	if err != nil {
		return err
	}
	return s.respondObject(w, r, http.StatusCreated, stored)
}

// decode returns the object in the body of a request.
func (r *request) decode() (*unstructured.Unstructured, error) {
	data, err := r.body()
	if err != nil {
		return nil, err
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case media == "application/yaml":
		data, err = yaml.YAMLToJSON(data)
	case media != "application/json" && media != "":
		return nil, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, r.Method, r.of.GroupResource(), "",
			"the body of the request was in an unknown format - accepted media types include: application/json, application/yaml", 0, true)
	}
	if err != nil && media != "" {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &object.Object); err != nil || object.Object == nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized: %v", err))
	}
	return object, r.checkKind(object)
}

// checkKind compares the type of an object with the one of the request.
func (r *request) checkKind(object *unstructured.Unstructured) error {
	wanted := r.of.GroupVersionKind()
	if object.GetKind() == "" && object.GetAPIVersion() == "" && !r.of.NeedsVersion() {
		object.SetGroupVersionKind(wanted)
	}
	if r.of.NeedsVersion() && object.GroupVersionKind().GroupVersion() == wanted.GroupVersion() && object.GetKind() != wanted.Kind {
		return apierrors.NewInvalid(object.GroupVersionKind().GroupKind(), object.GetName(), field.ErrorList{
			field.Invalid(field.NewPath("kind"), object.GetKind(), "must be "+wanted.Kind),
		})
	}
	if object.GroupVersionKind() != wanted {
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: the API version and kind must be %s, %s",
			object.GetKind(), object.GetAPIVersion(), wanted.Kind, wanted.GroupVersion(), wanted.Kind))
	}
	if _, ok := object.Object["metadata"].(map[string]any); !ok {
		object.Object["metadata"] = map[string]any{}
	}
	return nil
}

// insert stores a new object after all checks.
func (p *writer) insert(ctx context.Context, w http.ResponseWriter, r *request, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	// The name and the namespace.
	if object.GetNamespace() != "" && object.GetNamespace() != r.key.Namespace {
		return nil, apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	if r.key.Namespace != "" {
		object.SetNamespace(r.key.Namespace)
	}
	if prefix := object.GetGenerateName(); object.GetName() == "" && prefix != "" {
		object.SetName(prefix[:min(len(prefix), 58)] + rand.String(5))
	}
	if r.key.Name == "" {
		r.key.Name = object.GetName()
	}
	if object.GetName() != r.key.Name {
		return nil, apierrors.NewBadRequest("the name of the object does not match the name on the URL")
	}
	if version := object.GetResourceVersion(); version != "" && version != "0" {
		return nil, errors.New("resourceVersion should not be set on objects to be created")
	}
	if err := p.checkNamespace(r); err != nil {
		return nil, err
	}

	// The content, and the admission, which can change it.
	if err := r.coerce(w, object, nil); err != nil {
		return nil, err
	}
	initialize(object)
	r.of.PrepareCreate(object)
	if r.of.Terminating {
		return nil, apierrors.NewForbidden(r.of.GroupResource(), object.GetName(), errors.New("create not allowed while custom resource definition is terminating"))
	}
	review := webhook.Review{Resource: r.of, Operation: admissionv1.Create, Key: r.key, Object: object, DryRun: r.isDryRun(), Headers: w.Header()}
	object, err := p.hooks.Mutate(ctx, review)
	if err != nil {
		return nil, err
	}
	if object != review.Object {
		if err := r.coerce(w, object, nil); err != nil {
			return nil, err
		}
	}
	if faults := r.of.Validate(ctx, object, nil, ""); len(faults) > 0 {
		return nil, apierrors.NewInvalid(r.of.GroupVersionKind().GroupKind(), r.key.Name, faults)
	}
	if !r.isApply() {
		object = r.of.Track(r.subresource, r.empty(), object, r.manager())
	}
	review.Object = object
	if err := p.hooks.Validate(ctx, review); err != nil {
		return nil, err
	}

	exists := apierrors.NewAlreadyExists(r.of.GroupResource(), r.key.Name)
	if r.isDryRun() {
		if p.store.Get(r.of.Stored.GroupResource(), r.key) != nil {
			return nil, exists
		}
		return p.asStored(r, object)
	}
	stored, err := p.commit(r, nil, object)
	if errors.Is(err, store.ErrChanged) {
		return nil, exists
	}
	return stored, err
}

// checkNamespace returns an error if objects cannot be created in a namespace.
func (p *writer) checkNamespace(r *request) error {
	name := r.key.Namespace
	if name == "" {
		return nil
	}
	namespace := p.store.Get(namespaces, types.NamespacedName{Name: name})
	if namespace == nil {
		return apierrors.NewNotFound(namespaces, name)
	}
	if namespace.GetDeletionTimestamp() == nil {
		return nil
	}
	err := apierrors.NewForbidden(r.of.GroupResource(), r.key.Name,
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", name))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: "NamespaceTerminating", Message: fmt.Sprintf("namespace %s is being terminated", name), Field: "metadata.namespace",
	})
	return err
}

// initialize sets the metadata that every new object gets.
func initialize(object *unstructured.Unstructured) {
	object.SetUID(uuid.NewUUID())
	object.SetResourceVersion("")
	object.SetCreationTimestamp(now())
	object.SetDeletionTimestamp(nil)
	object.SetDeletionGracePeriodSeconds(nil)
	unstructured.RemoveNestedField(object.Object, "metadata", "selfLink")
}

// now returns the time as objects have it.
func now() metav1.Time { return metav1.NewTime(time.Now().UTC().Truncate(time.Second)) }

// coerce drops unknown fields and adds defaults. The request says whether unknown fields
// are an error, a warning, or ignored. Nothing is stored when the object is created.
func (r *request) coerce(w http.ResponseWriter, object, stored *unstructured.Unstructured) error {
	restore := detachOwners(object, stored)
	unknown, err := r.of.Decode(object)
	restore()
	switch {
	case err != nil && r.Method == http.MethodPatch && !r.isApply():
		return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), "", err.Error())})
	case err != nil:
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", r.of.Kind, r.of.Version, r.of.Kind, err))
	}
	slices.Sort(unknown)
	for i, path := range unknown {
		if !strings.Contains(path, "unknown field") {
			unknown[i] = fmt.Sprintf("unknown field %q", path)
		}
	}
	switch mode := r.query.Get("fieldValidation"); {
	case len(unknown) == 0 || mode == metav1.FieldValidationIgnore:
		return nil
	case mode == metav1.FieldValidationStrict:
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: strict decoding error: %s",
			r.of.Kind, r.of.Version, r.of.Kind, strings.Join(unknown, ", ")))
	}
	for _, text := range unknown {
		w.Header().Add("Warning", fmt.Sprintf("299 - %q", text))
	}
	return nil
}

// empty returns an object without anything but its kind.
func (r *request) empty() *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{}}}
	object.SetGroupVersionKind(r.of.GroupVersionKind())
	return object
}
