package diff

import "github.com/kopf-go/kopf/pkg/model/object"

// Equal compares two decoded JSON values by the rules of this package. It is
// true exactly when Compute finds no difference in the Full scope. It equals
// object.Equal.
func Equal(a, b any) bool { return object.Equal(a, b) }

// absent reports whether the value is a null. A nil map or list is one, as
// encoding/json writes it.
func absent(value any) bool { return object.Equal(value, nil) }
