package diff

import "github.com/kopf-go/kopf/pkg/model/object"

// Equal compares two decoded JSON values by the rules of this package. It returns true
// exactly if Compute finds no difference in the Full scope. It is the same as
// object.Equal.
func Equal(a, b any) bool { return object.Equal(a, b) }

// absent reports whether the value is a null. Nil maps and lists count as nulls, as in
// encoding/json.
func absent(value any) bool { return object.Equal(value, nil) }
