package kopf

import (
	"testing"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/pkg/kopf/object"
	"github.com/kopf-go/kopf/pkg/reconcile"
)

// Decoding the object would cost more than the rest of most calls.
func TestTheObjectIsNotLookedAtForAContext(t *testing.T) {
	(&surroundings{}).context(t.Context(), reconcile.About{Logger: logr.Discard(), Body: func() *object.Body {
		t.Error("the object is looked at, though nobody asks for an owner")
		return object.NewBody(nil)
	}})
}
