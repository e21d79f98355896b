package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	sigsjson "sigs.k8s.io/json"

	"github.com/kopf-go/kopf/internal/conversion"
	"github.com/kopf-go/kopf/internal/handler"
)

// maxNamedObjects is how many objects the answer to a failed review names.
const maxNamedObjects = 10

// convert returns the answer to a conversion review as JSON. It is answered before the operator knows
// its objects: the API server needs the conversion to list them.
func (w *webhook) convert(ctx context.Context, out http.ResponseWriter, in *http.Request, definition string) ([]byte, error) {
	if err := checkMethod(out, in); err != nil {
		return nil, err
	}
	graph := w.Conversions(definition)
	if graph == nil {
		return nil, newHTTPError(http.StatusNotFound, "the operator declares no conversion for %q, or does not know the resource yet: "+
			"correct spec.conversion of the definition, or update the operator", definition)
	}
	body, err := w.readBody(ctx, out, in, MaxConversion)
	if err != nil {
		return nil, err
	}
	review, err := decodeConversion(body, graph)
	if err != nil {
		return nil, err
	}
	request := review.Request
	review.Request = nil
	review.Response = w.converted(ctx, graph, request)
	return json.Marshal(review)
}

// decodeConversion decodes a review. Its errors are written for the sender of the review.
func decodeConversion(body []byte, graph *conversion.Graph) (*apiextensionsv1.ConversionReview, error) {
	var review apiextensionsv1.ConversionReview
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(body, &review); err != nil {
		return nil, newHTTPError(http.StatusBadRequest, "the body is not a ConversionReview as JSON: %w", err)
	}
	switch request := review.Request; {
	case review.GroupVersionKind() != apiextensionsv1.SchemeGroupVersion.WithKind("ConversionReview"):
		return nil, newHTTPError(http.StatusBadRequest, "a ConversionReview of %s is expected, not %q of %q",
			apiextensionsv1.SchemeGroupVersion, review.Kind, review.APIVersion)
	case request == nil:
		return nil, newHTTPError(http.StatusBadRequest, "the review has no request")
	case request.UID == "":
		return nil, newHTTPError(http.StatusBadRequest, "the request has no uid")
	}
	wanted, err := schema.ParseGroupVersion(review.Request.DesiredAPIVersion)
	if err != nil || wanted.Group != graph.Group || wanted.Version == "" {
		return nil, newHTTPError(http.StatusBadRequest, "the objects of %s cannot be converted to the version %q", graph.Name, review.Request.DesiredAPIVersion)
	}
	return &review, nil
}

// converted returns all objects in the wanted version, in their order, or an error that names each object that
// cannot be converted. The protocol has no answer for a part of the objects.
func (w *webhook) converted(ctx context.Context, graph *conversion.Graph, request *apiextensionsv1.ConversionRequest) *apiextensionsv1.ConversionResponse {
	_, to, _ := strings.Cut(request.DesiredAPIVersion, "/")
	objects := make([]runtime.RawExtension, 0, len(request.Objects))
	var failed []string
	for i, sent := range request.Objects {
		result, name, err := w.convertObject(ctx, graph, sent.Raw, to)
		if err != nil {
			failed = append(failed, fmt.Sprintf("%s: %s", cmp.Or(name, fmt.Sprintf("the object number %d", i+1)), err))
			continue
		}
		objects = append(objects, runtime.RawExtension{Raw: result})
	}
	if len(failed) == 0 {
		w.Logger.V(1).Info("Objects were converted.", "resource", graph.Name, "to", to, "objects", len(objects))
		return &apiextensionsv1.ConversionResponse{UID: request.UID, ConvertedObjects: objects, Result: metav1.Status{Status: metav1.StatusSuccess}}
	}
	what := fmt.Sprintf("%d of %d objects of %s cannot be converted to %s: ", len(failed), len(request.Objects), graph.Name, to)
	if more := len(failed) - maxNamedObjects; more > 0 {
		failed = append(failed[:maxNamedObjects], fmt.Sprintf("and %d more", more))
	}
	return &apiextensionsv1.ConversionResponse{UID: request.UID, Result: metav1.Status{
		Status: metav1.StatusFailure, Message: what + strings.Join(failed, "; "), Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError,
	}}
}

// convertObject returns an object in another version as JSON, and what names the object. The error is written for the
// sender of the review.
func (w *webhook) convertObject(ctx context.Context, graph *conversion.Graph, raw []byte, to string) (result []byte, name string, err error) {
	object := &unstructured.Unstructured{}
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(raw, &object.Object); err != nil {
		return nil, "", fmt.Errorf("it cannot be read: %w", err)
	}
	if object.Object == nil {
		return nil, "", errors.New("it is empty")
	}
	name = nameObject(object)
	from := object.GroupVersionKind().Version
	log := w.Logger.WithValues("object", convertedReference{object}, "resource", graph.Name, "from", from, "to", to)
	began := time.Now()
	changed, err := graph.Convert(logr.NewContext(ctx, log), object, to, log)
	if err == nil {
		result, err = json.Marshal(changed.Object)
	}
	w.Converted(graph.Name, from, to, err, time.Since(began))
	if err == nil {
		return result, name, nil
	}
	w.failures.record(log, graph.Name, object, err)
	var panicked *handler.PanicError
	var step *conversion.StepError
	if errors.As(err, &panicked) && errors.As(err, &step) { // the text of a panic is not written for users
		err = fmt.Errorf("from %s to %s: the function panicked; see the log of the operator", step.Step.From, step.Step.To)
	}
	return nil, name, err
}

// nameObject names an object for people. It returns "" for one without a name.
func nameObject(object *unstructured.Unstructured) string {
	name := cmp.Or(object.GetName(), object.GetGenerateName())
	if name == "" {
		return ""
	}
	if namespace := object.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	if uid := object.GetUID(); uid != "" {
		name += fmt.Sprintf(" (uid %s)", uid)
	}
	return name
}

// convertedReference logs an object that is converted. It is evaluated only when a line is written.
type convertedReference struct{ object *unstructured.Unstructured }

var _ logr.Marshaler = convertedReference{}

// MarshalLog returns a reference to the object.
func (r convertedReference) MarshalLog() any {
	reference := corev1.ObjectReference{Namespace: r.object.GetNamespace(), Name: r.object.GetName(), UID: r.object.GetUID()}
	reference.APIVersion, reference.Kind = r.object.GroupVersionKind().ToAPIVersionAndKind()
	return reference
}
