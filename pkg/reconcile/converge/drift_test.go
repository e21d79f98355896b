package converge

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/go-logr/logr/funcr"

	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/selector"
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

// drifted returns an operator with a child of which another client has changed fields.
func drifted(t *testing.T, fields string) *operator {
	t.Helper()
	o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
	expect(t, o, "apply one")
	changed := o.objects["one"].DeepCopy()
	changed.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: "kopf-test", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{},"f:annotations":{},"f:ownerReferences":{}}}`)},
		{Manager: "another", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:data":` + fields + `}`)},
	})
	o.objects["one"] = changed
	o.touch()
	o.show(o.objects["one"])
	return o
}

// decide lets a function decide about drift, and returns the decided fields of each question.
func (o *operator) decide(answer func() (convergence.Resolution, error)) *[]string {
	var asked []string
	o.drift = func(_ context.Context, _ selector.Resource, drift convergence.Drift) (convergence.Resolution, error) {
		var paths []string
		for _, f := range drift.Fields {
			paths = append(paths, f.Path)
		}
		asked = append(asked, strings.Join(paths, " "))
		return answer()
	}
	return &asked
}

func TestAcceptedDriftStays(t *testing.T) {
	o := drifted(t, `{"f:a":{}}`)
	var lines []string
	o.log = funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	asked := o.decide(func() (convergence.Resolution, error) { return convergence.Accept(), nil })
	expect(t, o, "get one", "apply one")
	if want := []string{"data.a"}; !slices.Equal(*asked, want) {
		t.Errorf("asked about %q", *asked)
	}
	if text := strings.Join(lines, "\n"); !strings.Contains(text, `"Changes of a child by others are accepted." "child"="ConfigMap ns/one" "fields"="data.a (by another)"`) || strings.Contains(text, "is restored") {
		t.Errorf("got %s", text)
	}
	if _, found, _ := unstructured.NestedString(o.objects["one"].Object, "data", "a"); found {
		t.Error("the accepted field was applied")
	}
	if marks := readAnnotation(o.objects["one"].GetAnnotations()[convergence.MarksAnnotation]); marks.Accepted["data.a"] != hashOf("b") {
		t.Errorf("the annotation has %v", marks.Accepted)
	}
	o.show(o.objects["one"])
	expect(t, o)
	o.value = "c" // something else is wanted
	expect(t, o, "apply one")
	if value, _, _ := unstructured.NestedString(o.objects["one"].Object, "data", "a"); value != "c" {
		t.Errorf("got %q", value)
	}
}

// A decision is valid only for the version that the handler has seen.
func TestDecisionIsAboutOneVersion(t *testing.T) {
	o := drifted(t, `{"f:a":{}}`)
	questions := 0
	o.decide(func() (convergence.Resolution, error) {
		questions++
		if questions == 1 {
			o.touch()
		}
		return convergence.Restore(), nil
	})
	expect(t, o, "get one", "apply one", "get one", "get one", "apply one")
	if questions != 2 {
		t.Errorf("asked %d times", questions)
	}
}

// What is not decided is not restored together with something else that is wanted.
func TestUndecidedFieldsAreAskedAboutAgain(t *testing.T) {
	failure := errors.New("not yet")
	for name, test := range map[string]struct {
		change func(o *operator)
		want   []string // the requests
		asked  string   // the fields; empty for no question
		value  string   // that is applied for the field
	}{
		"the same is wanted":              {func(*operator) {}, []string{"get one", "apply one"}, "data.a", "b"},
		"another field is wanted as well": {func(o *operator) { o.more = "x" }, []string{"get one", "apply one"}, "data.a", "b"},
		"another value is wanted":         {func(o *operator) { o.value = "c" }, []string{"get one", "apply one"}, "", "c"},
	} {
		t.Run(name, func(t *testing.T) {
			o := drifted(t, `{"f:a":{},"f:b":{}}`)
			answer := failure
			asked := o.decide(func() (convergence.Resolution, error) { return convergence.Restore(), answer })
			if requests, err := o.step(t); !errors.Is(err, failure) || !slices.Equal(requests, []string{"get one"}) {
				t.Fatalf("got %v after %q", err, requests)
			}
			*asked = nil
			answer = nil
			test.change(o)
			expect(t, o, test.want...)
			if got := strings.Join(*asked, "; "); got != test.asked {
				t.Errorf("asked about %q, want %q", got, test.asked)
			}
			if value, _, _ := unstructured.NestedString(o.objects["one"].Object, "data", "a"); value != test.value {
				t.Errorf("applied %q", value)
			}
			o.show(o.objects["one"])
			*asked = nil
			expect(t, o)
		})
	}
}

// A child that another client has deleted is created again when the handlers have decided about that, once.
func TestDeletionIsDecidedOnce(t *testing.T) {
	failure := errors.New("not yet")
	lost := func(t *testing.T) *operator {
		t.Helper()
		o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
		expect(t, o, "apply one")
		o.show(o.objects["one"])
		gone := o.objects["one"]
		delete(o.objects, "one")
		o.store.observe(readFact(gone, "kopf-test"), true)
		return o
	}
	t.Run("it is decided", func(t *testing.T) {
		o := lost(t)
		asked := o.decide(func() (convergence.Resolution, error) { return convergence.Restore(), nil })
		o.failing, o.failure = 2, failure // the creation
		if requests, err := o.step(t); !errors.Is(err, failure) || !slices.Equal(requests, []string{"get one", "apply one"}) {
			t.Errorf("got %v after %q", err, requests)
		}
		o.failing = 0
		expect(t, o, "apply one")
		if want := []string{""}; !slices.Equal(*asked, want) {
			t.Errorf("asked about %q", *asked)
		}
	})
	t.Run("it is not decided", func(t *testing.T) {
		o := lost(t)
		answer := failure
		asked := o.decide(func() (convergence.Resolution, error) { return convergence.Restore(), answer })
		if requests, err := o.step(t); !errors.Is(err, failure) || !slices.Equal(requests, []string{"get one"}) {
			t.Errorf("got %v after %q", err, requests)
		}
		answer = nil
		expect(t, o, "get one", "apply one")
		if len(*asked) != 2 {
			t.Errorf("asked about %q", *asked)
		}
	})
	t.Run("it cannot be read", func(t *testing.T) {
		o := lost(t)
		asked := o.decide(func() (convergence.Resolution, error) { return convergence.Restore(), nil })
		o.failing, o.failure = 1, failure
		if requests, err := o.step(t); !errors.Is(err, failure) || !slices.Equal(requests, []string{"get one"}) || len(*asked) > 0 {
			t.Errorf("got %v after %q, asked about %q", err, requests, *asked)
		}
	})
	t.Run("it has only lost its label", func(t *testing.T) {
		o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
		expect(t, o, "apply one")
		o.show(o.objects["one"])
		o.strip()
		o.store.observe(readFact(o.objects["one"], "kopf-test"), true)
		asked := o.decide(func() (convergence.Resolution, error) { return convergence.Restore(), nil })
		expect(t, o, "get one", "apply one", "get one", "apply one")
		if len(*asked) > 0 {
			t.Errorf("asked about %q, which are the operator's own marks", *asked)
		}
	})
}
