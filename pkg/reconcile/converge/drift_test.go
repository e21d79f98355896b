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
	for _, f := range driftOf(u, applied{content: content}, "us") {
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
	if all, complete := accepted(nil).with(convergence.AcceptFields("spec.selector"), driftOf(u, applied{content: content}, "us")); complete || len(all) != 1 {
		t.Errorf("got %v, %v", all, complete)
	}
}

// What is accepted for an item stays with it when the list has another order or other items, whatever its
// keys are called.
func TestAcceptedFieldsStayWithTheirItems(t *testing.T) {
	tests := map[string]struct {
		owned, live  string // the set of the operator, and the field of the other manager
		wanted       string
		path         string
		later, apart string // what is wanted later, and what is applied of it
	}{
		"a key with another name": {
			`{"f:list":{"k:{\"asn\":65001}":{"f:asn":{}},"k:{\"asn\":65002}":{"f:asn":{},"f:weight":{}}}}`, `{"list":[{"asn":65001,"weight":9},{"asn":65002,"weight":2}]}`,
			`{"list":[{"asn":65001,"weight":1},{"asn":65002,"weight":2}]}`, "list[asn=65001].weight",
			`{"list":[{"asn":65003,"weight":1},{"asn":65002,"weight":1},{"asn":65001,"weight":1}]}`,
			`{"list":[{"asn":65003,"weight":1},{"asn":65002,"weight":1},{"asn":65001}]}`,
		},
		"two keys": {
			`{"f:list":{"k:{\"port\":53,\"protocol\":\"TCP\"}":{"f:port":{},"f:protocol":{}},"k:{\"port\":53,\"protocol\":\"UDP\"}":{"f:port":{},"f:protocol":{},"f:to":{}}}}`,
			`{"list":[{"port":53,"protocol":"TCP","to":"x"},{"port":53,"protocol":"UDP","to":"b"}]}`,
			`{"list":[{"port":53,"protocol":"TCP","to":"a"},{"port":53,"protocol":"UDP","to":"b"}]}`, "list[port=53,protocol=TCP].to",
			`{"list":[{"port":53,"protocol":"UDP","to":"a"},{"port":53,"protocol":"TCP","to":"a"}]}`,
			`{"list":[{"port":53,"protocol":"UDP","to":"a"},{"port":53,"protocol":"TCP"}]}`,
		},
		"a key beyond floats": {
			`{"f:list":{"k:{\"id\":9007199254740993}":{"f:id":{}}}}`, `{"list":[{"id":9007199254740992,"a":"z"},{"id":9007199254740993,"a":"x"}]}`,
			`{"list":[{"id":9007199254740993,"a":"y"}]}`, "list[id=9007199254740993].a",
			`{"list":[{"id":9007199254740992,"a":"y"},{"id":9007199254740993,"a":"y"}]}`,
			`{"list":[{"id":9007199254740992,"a":"y"},{"id":9007199254740993}]}`,
		},
		"a text that looks like the rest of a path": {
			`{"f:list":{"k:{\"key\":\"a].b[c=d\"}":{"f:key":{}}}}`, `{"list":[{"key":"a].b[c=d","v":"x"}]}`,
			`{"list":[{"key":"a].b[c=d","v":"y"}]}`, "list[key=a].b[c=d].v",
			`{"list":[{"key":"a","v":"y"},{"key":"a].b[c=d","v":"y"}]}`,
			`{"list":[{"key":"a","v":"y"},{"key":"a].b[c=d"}]}`,
		},
		"a key that the server sets": {
			`{"f:list":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{"f:port":{}}}}`, `{"list":[{"port":80,"protocol":"TCP","to":"x"}]}`,
			`{"list":[{"port":80,"to":"a"}]}`, "list[port=80].to",
			`{"list":[{"port":81,"to":"a"},{"port":80,"to":"a"}]}`,
			`{"list":[{"port":81,"to":"a"},{"port":80}]}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: exactly(t, test.live)}
			u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "us", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(test.owned)}})
			drift := driftOf(u, applied{content: exactly(t, test.wanted)}, "us")
			if len(drift) != 1 || drift[0].Path != test.path {
				t.Fatalf("got %v, want %s", drift, test.path)
			}
			if found, _ := drift[0].Found.Any().(string); found != "x" && drift[0].Found.Any() != int64(9) {
				t.Errorf("found %v", drift[0].Found.Any())
			}
			fields, _ := accepted(nil).with(convergence.AcceptFields(test.path), drift)
			later := exactly(t, test.later)
			if kept := fields.leaveOut(later); len(kept) != 1 || hashOf(later) != hashOf(exactly(t, test.apart)) {
				t.Errorf("kept %v; applied %v, want %s", kept, later, test.apart)
			}
		})
	}
}

// exactly decodes an object as the API server's answers are: integers stay integers.
func exactly(t *testing.T, text string) map[string]any {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON([]byte(`{"kind":"A",` + text[1:])); err != nil {
		t.Fatal(err)
	}
	delete(u.Object, "kind")
	return u.Object
}
