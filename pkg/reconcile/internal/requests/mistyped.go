package requests

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kopf-go/kopf/internal/request"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

// annotationsPath is the path of the annotations in an object.
var annotationsPath = object.Path{"metadata", "annotations"}

// Mistyped returns notes on annotations with a name that is similar to that of a request. They
// are not recorded on the object, because others may use such names: a handler with the id
// request-retries has its progress there. A nil Reader finds none.
func (r *Reader) Mistyped(body *object.Body) (notes []Note) {
	if r == nil || storage.HasCopiedAnnotations(body) {
		return nil
	}
	found, _ := body.Lookup(annotationsPath)
	annotations, _ := found.(map[string]any)
	for name, content := range annotations {
		verb, isLike := strings.CutPrefix(name, r.prefix)
		value, isText := content.(string)
		if !isLike || !isText || strings.HasPrefix(value, "{") {
			continue // nearly always; or a record
		}
		if meant := request.SuggestVerb(verb); meant != "" {
			message := fmt.Sprintf("There is no request with the annotation %s; did you mean %s?", name, meant.Name())
			notes = append(notes, Note{Value: verb + " " + value, Refused: true, Message: message})
		}
	}
	slices.SortFunc(notes, func(a, b Note) int { return strings.Compare(a.Value, b.Value) })
	return notes
}
