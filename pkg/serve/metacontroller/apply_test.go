package metacontroller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// parsed returns an object with a kind and a name, and with what is given.
func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	if err := utiljson.Unmarshal(data, &obj.Object); err != nil {
		t.Fatal(err)
	}
	obj.SetAPIVersion("v1")
	obj.SetKind("Thing")
	obj.SetName("one")
	return obj
}

// A child gets what is returned for it, keeps what others have set, and loses what is not returned anymore.
func TestUpdates(t *testing.T) {
	for name, test := range map[string]struct{ was, is, wanted, want string }{
		"nothing":                         {"{a: 1}", "{a: 1, b: 2}", "{a: 1}", ""},
		"a change":                        {"{a: 1}", "{a: 1, b: 2}", "{a: 3}", "{a: 3, b: 2}"},
		"a change by others":              {"{a: 1}", "{a: 2, b: 2}", "{a: 1}", "{a: 1, b: 2}"},
		"a field that is not returned":    {"{a: 1, c: {d: 1, e: 2}}", "{a: 1, b: 2, c: {d: 1, e: 2, f: 3}}", "{c: {d: 1}}", "{b: 2, c: {d: 1, f: 3}}"},
		"a null":                          {"{a: 1}", "{a: 1, b: 2}", "{a: null}", "{b: 2}"},
		"a null without a field":          {"{a: 1}", "{a: 1}", "{a: 1, b: null}", "{a: 1}"},
		"a list of values":                {"{l: [1, 2]}", "{l: [1, 2, 3]}", "{l: [1, 2]}", "{l: [1, 2]}"},
		"items with names":                {"{l: [{name: a, x: 1}, {name: b}]}", "{l: [{name: z}, {name: a, x: 1, y: 2}, {name: b}]}", "{l: [{name: c}, {name: a, x: 2}]}", "{l: [{name: z}, {name: a, x: 2, y: 2}, {name: c}]}"},
		"items with ports":                {"{l: [{port: 80, name: a}]}", "{l: [{port: 80, name: a, nodePort: 5}]}", "{l: [{port: 80, name: b}]}", "{l: [{port: 80, name: b, nodePort: 5}]}"},
		"items with the same ports":       {"{l: [{port: 80}]}", "{l: [{port: 80, protocol: TCP}, {port: 80, protocol: UDP}]}", "{l: [{port: 80}]}", "{l: [{port: 80}]}"},
		"another type":                    {"{a: 1}", "{a: {b: 1}}", "{a: 1}", "{a: 1}"},
		"a status":                        {"{}", "{status: {a: 1}}", "{status: {a: 2}}", "{status: {a: 1}}"},
		"metadata of the system":          {"{}", "{metadata: {uid: u, generation: 2}}", "{metadata: {uid: v, creationTimestamp: null, labels: {a: b}}}", "{metadata: {uid: u, generation: 2, labels: {a: b}}}"},
		"an object that was never marked": {"", "{a: 1, b: 2}", "{a: 1}", "{a: 1, b: 2}"},
	} {
		t.Run(name, func(t *testing.T) {
			existing := parsed(t, test.is)
			if test.was != "" {
				was, err := marked(parsed(t, test.was))
				if err != nil {
					t.Fatal(err)
				}
				setAnnotation(existing, lastApplied, was.GetAnnotations()[lastApplied])
			}
			before := existing.DeepCopy()
			wanted := parsed(t, test.wanted)
			child, changed, err := updated(existing, wanted)
			if err != nil || changed != (test.want != "") {
				t.Fatalf("got %t, %v", changed, err)
			}
			if diff := cmp.Diff(before, existing); diff != "" {
				t.Errorf("the existing object is another one: %s", diff)
			}
			if !changed {
				return
			}
			want := parsed(t, test.want)
			mark, err := marked(wanted)
			if err != nil {
				t.Fatal(err)
			}
			setAnnotation(want, lastApplied, mark.GetAnnotations()[lastApplied])
			if diff := cmp.Diff(want, child); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if _, again, err := updated(child, wanted); again || err != nil {
				t.Errorf("the child changes again: %t, %v", again, err)
			}
		})
	}
}
