package storage

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage/internal/annotation"
)

// Validator is implemented by storages whose declaration can be wrong. The mistakes
// are reported before the operator starts.
type Validator interface {
	// Validate reports all mistakes in the storage's declaration.
	Validate() error
}

// maxPrefix leaves room for a slash and the longest name in the 253 characters
// that Kubernetes allows for the key of an annotation.
const maxPrefix = 253 - annotation.MaxName - len("/")

// validatePrefix accepts an empty prefix, which selects the default.
func validatePrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	if mistakes := validation.IsDNS1123Subdomain(prefix); len(mistakes) > 0 {
		return fmt.Errorf("the annotation prefix %q must be a domain name, such as my-op.example.com", prefix)
	}
	if len(prefix) > maxPrefix {
		return fmt.Errorf("the annotation prefix %q has %d characters, but at most %d are allowed", prefix, len(prefix), maxPrefix)
	}
	return nil
}

// validateKey accepts an empty key, which selects the default.
func validateKey(key string) error {
	if key == "" {
		return nil
	}
	if strings.Contains(key, "/") || len(validation.IsQualifiedName(key)) > 0 {
		return fmt.Errorf("the key %q must be a name such as %s: letters, digits, and the characters -_. inside, at most %d characters, and no prefix", key, DefaultKey, annotation.MaxName)
	}
	if key == annotation.Marker {
		return fmt.Errorf("the key %q is reserved for marking the prefixes of operators: choose another one", key)
	}
	return nil
}

// validateField accepts an empty field, which selects the default.
func validateField(field object.Path) error {
	if len(field) == 0 {
		return nil
	}
	switch {
	case len(field) == 1:
		return fmt.Errorf("the field %q is not reserved for a storage: choose a field inside it, such as status.kopf.%s", field, field)
	case field[0] == "apiVersion" || field[0] == "kind" || field[0] == "metadata":
		return fmt.Errorf("the field %q cannot hold the data of a storage: choose a field inside status, such as status.my-operator", field)
	}
	for _, key := range field {
		if key == "" {
			return fmt.Errorf("the field %q has an empty part", field)
		}
	}
	return nil
}

func validateAll[S any](storages []S) error {
	if len(storages) == 0 {
		return errors.New("a multi-storage is empty: add at least one storage")
	}
	var errs []error
	for i, each := range storages {
		if any(each) == nil {
			errs = append(errs, fmt.Errorf("storage %d is nil", i+1))
			continue
		}
		if validator, ok := any(each).(Validator); ok {
			if err := validator.Validate(); err != nil {
				errs = append(errs, fmt.Errorf("storage %d: %w", i+1, err))
			}
		}
	}
	return errors.Join(errs...)
}
