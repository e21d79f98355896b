package storage_test

import (
	"strings"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

func TestValidate(t *testing.T) {
	for name, test := range map[string]struct {
		storage storage.Validator
		want    []string // parts of the message; none: it is valid
	}{
		"the defaults are valid": {storage.MultiDiffBase{storage.AnnotationsDiffBase{}, storage.StatusDiffBase{}}, nil},
		"the defaults of progress are valid": {
			storage.MultiProgress{storage.SmartProgress{}, storage.AnnotationsProgress{}, storage.StatusProgress{}, storage.MultiProgress{unreachable{}}}, nil,
		},
		"other names are valid": {storage.AnnotationsDiffBase{Prefix: "my-op.example.com", Key: "diff-base"}, nil},
		"a prefix must be a domain name": {
			storage.AnnotationsProgress{Prefix: "My Op/x"}, []string{`the annotation prefix "My Op/x" must be a domain name`},
		},
		"a prefix must leave room for names": {
			storage.SmartProgress{Prefix: strings.Repeat("x", 63) + "." + strings.Repeat("y", 63) + "." + strings.Repeat("z", 62)},
			[]string{"has 190 characters, but at most 189"},
		},
		"a key must be a name":              {storage.AnnotationsDiffBase{Key: "my-op.example.com/key"}, []string{`the key "my-op.example.com/key" must be a name`}},
		"a key must not be the marker":      {storage.AnnotationsDiffBase{Key: "kopf-managed"}, []string{"marking the prefixes"}},
		"a field must be inside another":    {storage.StatusDiffBase{Field: object.Path{"status"}}, []string{`such as status.kopf.status`}},
		"a field must be able to hold data": {storage.StatusProgress{Field: object.Path{"metadata", "x"}}, []string{`the field "metadata.x" cannot hold`}},
		"a field must have no empty part":   {storage.StatusProgress{Field: object.Path{"status", ""}}, []string{"has an empty part"}},
		"all mistakes are reported with their location": {
			storage.MultiDiffBase{storage.AnnotationsDiffBase{Prefix: "_", Key: "/"}, nil, storage.StatusDiffBase{Field: object.Path{"spec"}}},
			[]string{`storage 1: the annotation prefix "_"`, `the key "/"`, "storage 2 is nil", `storage 3: the field "spec"`},
		},
		"there must be a storage": {storage.MultiProgress{}, []string{"add at least one storage"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.storage.Validate()
			if (err == nil) != (len(test.want) == 0) {
				t.Fatalf("got %v", err)
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("got %v, want %q", err, part)
				}
			}
		})
	}
}
