package apiserver

import (
	"maps"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
)

// respond sends a value as JSON.
func respond(w http.ResponseWriter, code int, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, err = w.Write(append(data, '\n'))
	return err
}

// view is the form in which a client wants objects.
type view struct {
	metadataOnly bool
}

// viewOf returns the form that a request accepts. Its media types come in the order of
// preference; JSON is the only format.
func viewOf(r *http.Request) (view, error) {
	accepted := r.Header.Get("Accept")
	if accepted == "" {
		return view{}, nil
	}
	for media := range strings.SplitSeq(accepted, ",") {
		name, parameters, _ := strings.Cut(strings.ReplaceAll(media, " ", ""), ";")
		if name != "application/json" && name != "*/*" && name != "application/*" {
			continue
		}
		switch {
		case strings.Contains(parameters, "as=PartialObjectMetadata"):
			return view{metadataOnly: true}, nil
		case strings.Contains(parameters, "as="):
			continue
		default:
			return view{}, nil
		}
	}
	return view{}, apierrors.NewGenericServerResponse(http.StatusNotAcceptable, "", metaResource, "", "only JSON is supported: "+accepted, 0, true)
}

var metaResource = namespaces

// metaVersion is the version of partial objects.
const metaVersion = "meta.k8s.io/v1"

// of returns an object in the form of the view.
func (v view) of(object *unstructured.Unstructured) map[string]any {
	if !v.metadataOnly {
		return object.Object
	}
	return map[string]any{"apiVersion": metaVersion, "kind": "PartialObjectMetadata", "metadata": object.Object["metadata"]}
}

// list returns a list of converted objects in the form of the view.
func (v view) list(r *request, objects []*unstructured.Unstructured, metadata map[string]any) map[string]any {
	items := make([]any, 0, len(objects))
	for _, object := range objects {
		items = append(items, v.of(object))
	}
	content := map[string]any{
		"apiVersion": r.of.GroupVersion().String(), "kind": r.of.Kind + "List", "metadata": metadata, "items": items,
	}
	if v.metadataOnly {
		maps.Copy(content, map[string]any{"apiVersion": metaVersion, "kind": "PartialObjectMetadataList"})
	}
	return content
}

// respondObject sends a stored object in the version and the form of the request.
func (s *Server) respondObject(w http.ResponseWriter, r *request, code int, stored *unstructured.Unstructured) error {
	form, err := viewOf(r.Request)
	if err != nil {
		return err
	}
	object, err := s.writer.convert(r, stored)
	if err != nil {
		return err
	}
	return respond(w, code, form.of(object))
}
