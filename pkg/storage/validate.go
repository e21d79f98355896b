package storage

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage/internal/annotation"
)

// Validator is a storage that can be declared wrongly. The mistakes are looked
// for before the operator starts.
type Validator interface {
	// Validate names all mistakes in the storage's declaration.
	Validate() error
}

// maxPrefix leaves room for a slash and the longest name in the 253 characters
// that Kubernetes allows for the key of an annotation.
const maxPrefix = 253 - annotation.MaxName - len("/")

// validatePrefix accepts an empty prefix: it stands for the default.
func validatePrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	if mistakes := validation.IsDNS1123Subdomain(prefix); len(mistakes) > 0 {
		return fmt.Errorf("the prefix %q of annotations must be a domain name like my-op.example.com", prefix)
	}
	if len(prefix) > maxPrefix {
		return fmt.Errorf("the prefix %q of annotations has %d characters: at most %d leave room for names", prefix, len(prefix), maxPrefix)
	}
	return nil
}

// validateKey accepts an empty key: it stands for the default.
func validateKey(key string) error {
	if key == "" {
		return nil
	}
	if strings.Contains(key, "/") || len(validation.IsQualifiedName(key)) > 0 {
		return fmt.Errorf("the key %q must be a name like %s: letters, digits and -_. inside, at most %d characters, and no prefix", key, DefaultKey, annotation.MaxName)
	}
	if key == annotation.Marker {
		return fmt.Errorf("the key %q is the one that marks the prefixes of operators: take another one", key)
	}
	return nil
}

// validateField accepts an empty field: it stands for the default.
func validateField(field object.Path) error {
	if len(field) == 0 {
		return nil
	}
	switch {
	case len(field) == 1:
		return fmt.Errorf("the field %q holds more than a storage: name a field inside of it, like status.kopf.%s", field, field)
	case field[0] == "apiVersion" || field[0] == "kind" || field[0] == "metadata":
		return fmt.Errorf("the field %q cannot hold what a storage keeps: name one inside of status, like status.my-operator", field)
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
		return errors.New("a storage made of several ones has none: name at least one")
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
