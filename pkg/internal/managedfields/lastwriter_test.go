package managedfields

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/model/object"
)

type entries = []metav1.ManagedFieldsEntry

// entry returns the entry of a manager that wrote the fields at a second.
func entry(manager string, second int64, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Time: &metav1.Time{Time: time.Unix(second, 0)}, FieldsV1: metav1.NewFieldsV1(fields)}
}

// describe returns the manager and the second of an entry.
func describe(e *metav1.ManagedFieldsEntry) string {
	if e == nil {
		return "none"
	}
	return fmt.Sprint(e.Manager, " ", e.Time.Unix())
}

func TestLastWriterOfAField(t *testing.T) {
	managers := entries{
		{Manager: "without a time", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:x":{}}}`)},
		entry("kubectl", 1, `{"f:spec":{".":{},"f:x":{},"f:y":{}}}`),
		entry("later", 3, `{"f:spec":{"f:y":{}},"f:metadata":{"f:finalizers":{".":{},"v:\"a\"":{}},"f:annotations":{"f:a/b":{}}}}`),
		entry("earlier", 2, `{"f:spec":{"f:y":{}}}`),
		{Manager: "without fields"},
		entry("broken", 9, `{`),
	}
	tests := map[string]struct {
		fields []object.Path
		want   string
	}{
		"the only writer with a time":        {[]object.Path{{"spec", "x"}}, "kubectl 1"},
		"the last of several writers":        {[]object.Path{{"spec", "y"}}, "later 3"},
		"the writer of one field of several": {[]object.Path{{"spec", "z"}, {"spec", "x"}}, "kubectl 1"},
		"the writer of an annotation":        {[]object.Path{{"metadata", "annotations", "a/b"}}, "later 3"},
		"the writer of a list":               {[]object.Path{{"metadata", "finalizers"}}, "later 3"},
		"no writer of the field is known":    {[]object.Path{{"status"}}, "none"},
		"no field, hence no writer":          {nil, "none"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := describe(LastWriter(managers, nil, test.fields...)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestLastWriterSinceAnEarlierState(t *testing.T) {
	const webhooks, metadata = `{"f:webhooks":{}}`, `{"f:metadata":{}}`
	a, b := entry("a", 1, webhooks), entry("b", 1, webhooks)
	later, other := entry("a", 2, webhooks), entry("a", 3, metadata)
	tests := map[string]struct {
		entries, before entries
		want            string
	}{
		"no entries":                       {nil, nil, "none"},
		"the last entry":                   {entries{later, b}, nil, "a 2"},
		"not an entry of another field":    {entries{other, b}, nil, "b 1"},
		"the last of one second":           {entries{a, b}, nil, "b 1"},
		"the first entry is new":           {entries{a, b}, entries{b}, "a 1"},
		"the second entry is new":          {entries{a, b}, entries{a}, "b 1"},
		"a new entry of the same manager":  {entries{later}, entries{a}, "a 2"},
		"a new entry wins over later ones": {entries{a, later}, entries{later}, "a 1"},
		"no entry is new":                  {entries{a}, entries{a}, "a 1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := describe(LastWriter(test.entries, test.before, object.Path{"webhooks"})); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
