package patch

import (
	"errors"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// checkWritable rejects changes that handlers must not make. The API server would ignore some
// of them, so that the operator would write again and again; some refer to another
// object; and the resource version would disable the protection against lost updates.
func checkWritable(merge map[string]any) error {
	if err := rejectFields(merge, nil, "apiVersion", "kind"); err != nil {
		return err
	}
	change, changed := merge["metadata"]
	metadata, isMapping := change.(map[string]any)
	if changed && !isMapping {
		return &FieldError{Field: object.Path{"metadata"}, Err: errors.New("it cannot be replaced as a whole; patch its fields")}
	}
	return rejectFields(metadata, object.Path{"metadata"},
		"name", "namespace", "uid", "resourceVersion", "generation", "managedFields",
		"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
}

func rejectFields(merge map[string]any, path object.Path, fields ...string) error {
	for _, field := range fields {
		if _, changed := merge[field]; changed {
			return &FieldError{Field: append(path, field), Err: errors.New("handlers must not change it: leave it out of the patch")}
		}
	}
	return nil
}
