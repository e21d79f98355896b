package converge

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/model/convergence"
)

func TestAcceptedFieldsAreLeftOut(t *testing.T) {
	const wanted = `{"data":{"a":"1","b":"2"},"list":[{"name":"x","image":"y"},{"name":"z"}],"set":["p","q"],"empty":{}}`
	for name, test := range map[string]struct {
		accept map[string]string // the path, and what was wanted
		want   string
		kept   []string
	}{
		"nothing":                      {nil, wanted, nil},
		"a field":                      {map[string]string{"data.a": `"1"`}, `{"data":{"b":"2"},"list":[{"name":"x","image":"y"},{"name":"z"}],"set":["p","q"],"empty":{}}`, []string{"data.a"}},
		"all fields of a mapping":      {map[string]string{"data.a": `"1"`, "data.b": `"2"`}, `{"list":[{"name":"x","image":"y"},{"name":"z"}],"set":["p","q"],"empty":{}}`, []string{"data.a", "data.b"}},
		"a field that is wanted anew":  {map[string]string{"data.a": `"0"`}, wanted, nil},
		"a field that is not wanted":   {map[string]string{"data.c": `"1"`}, wanted, nil},
		"a field of an item":           {map[string]string{"list[name=x].image": `"y"`}, `{"data":{"a":"1","b":"2"},"list":[{"name":"x"},{"name":"z"}],"set":["p","q"],"empty":{}}`, []string{"list[name=x].image"}},
		"an item":                      {map[string]string{"list[name=z]": `{"name":"z"}`}, `{"data":{"a":"1","b":"2"},"list":[{"name":"x","image":"y"}],"set":["p","q"],"empty":{}}`, []string{"list[name=z]"}},
		"an item with an accepted one": {map[string]string{"list[name=x]": `{"image":"y","name":"x"}`, "list[name=x].image": `"y"`}, `{"data":{"a":"1","b":"2"},"list":[{"name":"z"}],"set":["p","q"],"empty":{}}`, []string{"list[name=x]"}},
		"a list, and an item of a set": {map[string]string{"list": `[{"image":"y","name":"x"},{"name":"z"}]`, "set[q]": `"q"`}, `{"data":{"a":"1","b":"2"},"set":["p"],"empty":{}}`, []string{"list", "set[q]"}},
	} {
		t.Run(name, func(t *testing.T) {
			fields := accepted{}
			for path, text := range test.accept {
				var value any
				if err := json.Unmarshal([]byte(text), &value); err != nil {
					t.Fatal(err)
				}
				fields[path] = hashOf(value)
			}
			content := decoded(t, wanted)
			kept := fields.leaveOut(content)
			if got := slices.Sorted(maps.Keys(kept)); !slices.Equal(got, test.kept) {
				t.Errorf("kept %v, want %v", got, test.kept)
			}
			if hashOf(content) != hashOf(decoded(t, test.want)) {
				t.Errorf("got %v, want %s", content, test.want)
			}
		})
	}
}

func TestDriftNamesTheManagers(t *testing.T) {
	const ours = `{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:name":{}}}}}`
	const others = `{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{"f:image":{},"f:args":{}}},"f:selector":{}}}`
	u := &unstructured.Unstructured{Object: decoded(t, `{"spec":{"containers":[{"name":"log"},{"name":"web","image":"b","args":["z"]}],"selector":{"app":"b","tier":"x"}}}`)}
	u.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: "us", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(ours)},
		{Manager: "them", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(others)},
	})
	content := decoded(t, `{"spec":{"containers":[{"name":"web","image":"a","args":["x","y"],"tty":true}],"selector":{"app":"a","tier":"x"}}}`)
	var got []string
	for _, f := range driftOf(u, applied{content: content}, Owner{}, "us") {
		wanted, _ := json.Marshal(f.Wanted.Any())
		found, _ := json.Marshal(f.Found.Any())
		got = append(got, f.String()+" "+string(wanted)+" "+string(found))
	}
	want := []string{
		`spec.containers[name=web].args (by them) ["x","y"] ["z"]`,
		`spec.containers[name=web].image (by them) "a" "b"`,
		`spec.containers[name=web].tty (removed) true null`,
		`spec.selector (by them) {"app":"a","tier":"x"} {"app":"b","tier":"x"}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if all, complete := accepted(nil).with(convergence.AcceptFields("spec.selector"), driftOf(u, applied{content: content}, Owner{}, "us")); complete || len(all) != 1 {
		t.Errorf("got %v, %v", all, complete)
	}
}
