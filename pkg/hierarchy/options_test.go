package hierarchy_test

import (
	"reflect"
	"testing"

	"github.com/kopf-go/kopf/pkg/hierarchy"
)

// The type of an option determines where the compiler accepts it.
func TestOptionsFitOnlyWhereTheyApply(t *testing.T) {
	takers := map[string]reflect.Type{
		"Adopt":                reflect.TypeFor[hierarchy.AdoptOption](),
		"Label":                reflect.TypeFor[hierarchy.LabelOption](),
		"HarmonizeNaming":      reflect.TypeFor[hierarchy.NamingOption](),
		"AdjustNamespace":      reflect.TypeFor[hierarchy.NamespaceOption](),
		"AppendOwnerReference": reflect.TypeFor[hierarchy.ReferenceOption](),
		"RemoveOwnerReference": reflect.TypeFor[hierarchy.RemovalOption](),
		"OwnerReference":       reflect.TypeFor[hierarchy.OwnershipOption](),
	}
	tests := map[string]struct {
		option any
		fits   []string
	}{
		"Forced":        {hierarchy.Forced, []string{"Label", "HarmonizeNaming", "AdjustNamespace"}},
		"Strict":        {hierarchy.Strict, []string{"HarmonizeNaming"}},
		"Nested":        {hierarchy.Nested, []string{"Label"}},
		"Labels":        {hierarchy.Labels, []string{"Label"}},
		"Name":          {hierarchy.Name, []string{"HarmonizeNaming"}},
		"Namespace":     {hierarchy.Namespace, []string{"AdjustNamespace"}},
		"NotController": {hierarchy.NotController, []string{"AppendOwnerReference", "OwnerReference"}},
		"NotBlocking":   {hierarchy.NotBlocking, []string{"AppendOwnerReference", "OwnerReference"}},
		"OwnedBy": {hierarchy.OwnedBy, []string{
			"Label", "HarmonizeNaming", "AdjustNamespace", "AppendOwnerReference", "RemoveOwnerReference",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			want := map[string]bool{"Adopt": true}
			for _, function := range test.fits {
				want[function] = true
			}
			has := reflect.TypeOf(test.option).Out(0)
			for function, takes := range takers {
				if fits := has.Implements(takes); fits != want[function] {
					t.Errorf("%s accepts it: %t", function, fits)
				}
			}
		})
	}
}
