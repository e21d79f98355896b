package patch

import (
	"errors"
	"fmt"
	"runtime/debug"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/internal/function"
	"github.com/kopf-go/kopf/internal/isolate"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// Transform changes an object in place, based on its current state. It gets a copy of the
// latest version of the object when the patch is about to be sent, and again after every
// conflict. It must depend only on that object, must have no side effects, and should be
// fast. An error counts as if the handler had returned it: it is retried, unless it is
// permanent. For event handlers, daemons, and timers, it is only reported.
//
// It may run twice on its own result if the response to a write was lost. Make it
// idempotent: for example, append only missing items to a list.
type Transform func(obj *unstructured.Unstructured) error

// applyTransforms returns the body after all transformations.
func applyTransforms(body map[string]any, transforms []Transform) (map[string]any, error) {
	if len(transforms) == 0 {
		return body, nil
	}
	current, err := object.Normalize(orEmpty(body))
	if err != nil {
		return nil, fmt.Errorf("the object cannot be copied: %w", err)
	}
	for _, transform := range transforms {
		obj := &unstructured.Unstructured{Object: current.(map[string]any)} //nolint:errcheck // an object is a mapping
		if err := run(transform, obj); err != nil {
			return nil, err
		}
		current, err = object.Normalize(orEmpty(obj.Object))
		if err != nil {
			return nil, &TransformError{Name: function.Symbol(transform), Err: unsupportedValue(nil, obj.Object, err)}
		}
	}
	return current.(map[string]any), nil //nolint:errcheck // as above
}

func run(transform Transform, obj *unstructured.Unstructured) (err error) {
	returned := isolate.Run(func() {
		defer func() {
			if value := recover(); value != nil {
				err = &TransformError{Name: function.Symbol(transform), Err: panicError(value), Stack: debug.Stack()}
			}
		}()
		if failure := transform(obj); failure != nil {
			_ = failure.Error() // the code of users, too: if it panics, the transformation has
			err = &TransformError{Name: function.Symbol(transform), Err: failure}
		}
	})
	if !returned {
		return &TransformError{Name: function.Symbol(transform), Err: errors.New("runtime.Goexit has ended the goroutine")}
	}
	return err
}

func panicError(value any) error {
	if err, ok := value.(error); ok {
		return fmt.Errorf("panic: %w", err)
	}
	return fmt.Errorf("panic: %v", value)
}
