package converge

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestPathsOfRefusalsAreParsed(t *testing.T) {
	for text, want := range map[string][]step{
		"":                        nil,
		"spec":                    {{field: "spec"}},
		"spec.ports[10].port":     {{field: "spec"}, {field: "ports"}, {index: 10}, {field: "port"}},
		"data[a.b/c]":             {{field: "data"}, {field: "a.b/c"}},
		"metadata.labels[x].y[0]": {{field: "metadata"}, {field: "labels"}, {field: "x"}, {field: "y"}, {index: 0}},
		"spec[99999999999999999999999999999999999]": nil,
	} {
		if got := stepsOf(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

// refusedFor is the answer of the API server about fields.
func refusedFor(kind metav1.CauseType, fields ...string) error {
	status := metav1.Status{Reason: metav1.StatusReasonInvalid, Details: &metav1.StatusDetails{}}
	for _, field := range fields {
		status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{Type: kind, Field: field})
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// others is a live child: what the operator has applied, a default, and what another manager has added.
const others = `{"metadata":{"resourceVersion":"7","labels":{"a":"b","team":"x","free":"y"},"managedFields":[
	{"manager":"kopf","operation":"Apply","fieldsV1":{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:env":{"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{},"f:ports":{"k:{\"id\":\"q\"}":{"f:id":{}}}},"k:{\"name\":\"OLD\"}":{".":{},"f:name":{}}},"f:strategy":{"f:type":{}}}}},
	{"manager":"other","operation":"Update","fieldsV1":{"f:metadata":{"f:labels":{"f:team":{}}},"f:extra":{},"f:spec":{"f:env":{"k:{\"name\":\"A\"}":{"f:valueFrom":{".":{},"f:key":{}}},"k:{\"name\":\"OLD\"}":{"f:value":{}},"k:{\"name\":\"B\"}":{".":{},"f:name":{},"f:value":{}}}}}},
	{"manager":"kopf","operation":"Update","fieldsV1":{"f:spec":{"f:old":{}}}},
	{"manager":"kopf","operation":"Apply","subresource":"status","fieldsV1":{"f:status":{}}},
	{"manager":"third","operation":"Apply","fieldsV1":{"f:spec":{"f:env":{"k:{\"name\":\"B\"}":{}}}}}
]},"extra":1,"spec":{"env":[{"name":"OLD","value":"0","slot":9},{"name":"A","value":"1","valueFrom":{"key":"k"},"ports":[{"id":"q"}]},{"name":"B","value":"2"}],"args":["x"],"none":[],"strategy":{"type":"Recreate","rolling":{"max":1}}}}`

func TestBlockersAreFound(t *testing.T) {
	const wanted = `{"metadata":{"labels":{"a":"b"}},"spec":{"env":[{"name":"A","value":"1","ports":[{"id":"p"}]},{"name":"C","value":"2"},{"name":"D","slot":9}],"args":["x"],"none":[],"strategy":{"type":"Recreate"}}}`
	for name, test := range map[string]struct {
		kind    metav1.CauseType
		fields  []string
		found   []string
		others  []string // to whom the first one, or the foreign one, belongs
		foreign string
	}{
		"nothing":                                {"", nil, nil, nil, ""},
		"a field that others have added":         {"", []string{"spec.env[1].valueFrom"}, []string{"spec.env[name=A].valueFrom"}, []string{"other"}, ""},
		"a field of no manager":                  {"", []string{"spec.strategy.rolling.max"}, []string{"spec.strategy.rolling"}, nil, ""},
		"the same twice":                         {"", []string{"spec.strategy.rolling", "spec.strategy.rolling.max"}, []string{"spec.strategy.rolling"}, nil, ""},
		"two":                                    {"", []string{"spec.env[1].valueFrom", "spec.strategy.rolling"}, []string{"spec.env[name=A].valueFrom", "spec.strategy.rolling"}, []string{"other"}, ""},
		"what is left of an item":                {"", []string{"spec.env[0].value"}, []string{"spec.env[name=OLD]"}, []string{"other"}, ""},
		"an item of others":                      {"", []string{"spec.env[2].value"}, nil, []string{"other", "third"}, "spec.env[name=B]"},
		"an item of others with equal value":     {metav1.CauseTypeFieldValueDuplicate, []string{"spec.env[3].value"}, nil, []string{"other", "third"}, "spec.env[name=B]"},
		"another cause for an item":              {metav1.CauseTypeFieldValueInvalid, []string{"spec.env[3].value"}, nil, nil, ""},
		"an item that is left, with equal value": {metav1.CauseTypeFieldValueDuplicate, []string{"spec.env[4].slot"}, []string{"spec.env[name=OLD]"}, []string{"other"}, ""},
		"a duplicate of no item":                 {metav1.CauseTypeFieldValueDuplicate, []string{"spec.env[4].key", "spec.env[4]"}, nil, nil, ""},
		"an item in an item":                     {"", []string{"spec.env[1].ports[0].id"}, []string{"spec.env[name=A].ports[id=q]"}, nil, ""},
		"a label of no manager":                  {"", []string{"metadata.labels[free]"}, nil, nil, ""},
		"an empty list":                          {"", []string{"spec.none[0]"}, nil, nil, ""},
		"a label of others":                      {"", []string{"metadata.labels[team]"}, nil, []string{"other"}, "metadata.labels.team"},
		"a field of the object itself":           {"", []string{"extra"}, nil, []string{"other"}, "extra"},
		"a wanted field":                         {"", []string{"spec.env[1].value", "spec.strategy.type"}, nil, nil, ""},
		"a list without keys":                    {"", []string{"spec.args[0]"}, nil, nil, ""},
		"what does not exist":                    {"", []string{"spec.env[7]", "spec.unknown", "spec.env.x", "spec.strategy[0]", "[0]"}, nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			found, foreign, rest := refusedChild(t, others, wanted).named(refusedFor(test.kind, test.fields...))
			if names := namesOf(found); !slices.Equal(names, test.found) {
				t.Errorf("found %v, want %v", names, test.found)
			}
			if names := namesOf(foreign); strings.Join(names, " ") != test.foreign {
				t.Errorf("others have %v, want %s", names, test.foreign)
			}
			for _, first := range slices.Concat(found, foreign)[:min(1, len(found)+len(foreign))] {
				if !slices.Equal(first.others, test.others) {
					t.Errorf("they belong to %v", first.others)
				}
			}
			if len(found)+len(foreign) == 0 && len(rest) != len(test.fields) {
				t.Errorf("the rest is %v", rest)
			}
		})
	}
	for _, err := range []error{errors.New("no answer"), &apierrors.StatusError{}} {
		if found, foreign, rest := refusedChild(t, others, wanted).named(err); found != nil || foreign != nil || rest != nil {
			t.Errorf("%v: %v, %v, %v", err, found, foreign, rest)
		}
	}
}

// Others can put an item in the place of a wanted one. It is removed if what is wanted was applied before.
func TestItemsInThePlaceOfWantedOnesAreRemoved(t *testing.T) {
	for name, test := range map[string]struct {
		wanted  string
		isDrift bool
		found   []string
	}{
		"a wanted item is missing":                 {`{"spec":{"env":[{"name":"A"},{"name":"C"}]}}`, true, []string{"spec.env[name=B]"}},
		"a wanted item is missing for a new state": {`{"spec":{"env":[{"name":"A"},{"name":"C"}]}}`, false, nil},
		"no wanted item is missing":                {`{"spec":{"env":[{"name":"A"}]}}`, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := refusedChild(t, others, test.wanted)
			c.isDrift = test.isDrift
			found, foreign, _ := c.named(refusedFor("", "spec.env[2].value"))
			if names := namesOf(found); !slices.Equal(names, test.found) || len(found)+len(foreign) != 1 {
				t.Errorf("found %v, want %v; others have %v", names, test.found, namesOf(foreign))
			}
		})
	}
}

// refusedChild returns a child of the manager kopf.
func refusedChild(t *testing.T, live, wanted string) refused {
	t.Helper()
	return refused{applied: applied{content: decoded(t, wanted)}, live: &unstructured.Unstructured{Object: decoded(t, live)}, manager: "kopf"}
}

func namesOf(parts []blocker) (names []string) {
	for _, b := range parts {
		names = append(names, b.at.String())
	}
	return names
}

// The next apply removes what belongs only to the operator, and is not wanted.
func TestBlockersAreTakenOver(t *testing.T) {
	u := &unstructured.Unstructured{Object: decoded(t, others)}
	const wanted = `{"spec":{"env":[{"name":"A","value":"1"}],"strategy":{"type":"Recreate"}}}`
	found, _, _ := refusedChild(t, others, wanted).named(refusedFor("", "spec.env[1].valueFrom", "spec.env[0].value", "spec.strategy.rolling"))
	text := takenOver(u, found, "kopf")
	var patch []struct {
		Op, Path string
		Value    json.RawMessage
	}
	if err := json.Unmarshal(text, &patch); err != nil || len(patch) != 2 || patch[1].Path != "/metadata/resourceVersion" || string(patch[1].Value) != `"7"` {
		t.Fatalf("%v: the patch is not bound to the version: %s", err, text)
	}
	var entries []metav1.ManagedFieldsEntry
	if err := json.Unmarshal(patch[0].Value, &entries); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		`{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:env":{"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{},"f:ports":{"k:{\"id\":\"q\"}":{"f:id":{}}},"f:valueFrom":{".":{},"f:key":{}}},` +
			`"k:{\"name\":\"OLD\"}":{".":{},"f:name":{},"f:value":{},"f:slot":{}}},"f:strategy":{"f:type":{},"f:rolling":{".":{},"f:max":{}}}}}`,
		`{"f:metadata":{"f:labels":{"f:team":{}}},"f:extra":{},"f:spec":{"f:env":{"k:{\"name\":\"B\"}":{".":{},"f:name":{},"f:value":{}}}}}`,
		`{"f:spec":{"f:old":{}}}`,
		`{"f:status":{}}`,
		`{"f:spec":{"f:env":{"k:{\"name\":\"B\"}":{}}}}`,
	} {
		if got := string(entries[i].FieldsV1.GetRawBytes()); !reflect.DeepEqual(decoded(t, got), decoded(t, want)) {
			t.Errorf("%s: got %s, want %s", entries[i].Manager, got, want)
		}
	}
}

func TestPartsAreAddedToWhatIsOwned(t *testing.T) {
	item := element{item: decoded(t, `{"name":"A","protocol":"TCP"}`), keys: []string{"name", "protocol", "zone"}}
	field := func(name string) element { return element{field: name} }
	for name, test := range map[string]struct {
		owned string
		part  path
		added string
		left  string // after the removal
	}{
		"a field":               {`{"f:a":{}}`, path{field("b")}, `{"f:a":{},"f:b":{}}`, `{"f:a":{}}`},
		"a field below another": {`{}`, path{field("a"), field("b")}, `{"f:a":{"f:b":{}}}`, `{}`},
		"a field of an item that is not owned": {
			`{}`,
			path{field("list"), item, field("b")},
			`{"f:list":{"k:{\"name\":\"A\",\"protocol\":\"TCP\"}":{".":{},"f:b":{}}}}`, `{"f:list":{"k:{\"name\":\"A\",\"protocol\":\"TCP\"}":{".":{}}}}`,
		},
		"a field of an owned item, whose keys are ordered in another way": {
			`{"f:list":{"v:1":{},"k:x":{},"k:{\"protocol\":\"TCP\",\"name\":\"A\"}":{"f:c":{}}}}`,
			path{field("list"), item, field("b")},
			`{"f:list":{"v:1":{},"k:x":{},"k:{\"protocol\":\"TCP\",\"name\":\"A\"}":{"f:c":{},"f:b":{}}}}`, `{"f:list":{"v:1":{},"k:x":{},"k:{\"protocol\":\"TCP\",\"name\":\"A\"}":{"f:c":{}}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := parseFields([]byte(test.owned))
			set.add(test.part, fieldSet{})
			if got := map[string]any(set); !reflect.DeepEqual(got, decoded(t, test.added)) {
				t.Errorf("added: %v", got)
			}
			set.remove(test.part)
			if got := map[string]any(set); !reflect.DeepEqual(got, decoded(t, test.left)) {
				t.Errorf("left: %v", got)
			}
		})
	}
}

// What is owned as a whole cannot be owned in part.
func TestPartsOfAWholeAreNotRemoved(t *testing.T) {
	for _, p := range []path{{{field: "a"}, {field: "b"}}, {{field: "x"}, {field: "b"}}, {{field: "x"}}} {
		set := parseFields([]byte(`{"f:a":{}}`))
		if set.remove(p); len(set) != 1 {
			t.Errorf("%s: %v is left", p, set)
		}
	}
}

// A refused child is read, and what blocks it is taken over before it is applied again. If the child changes meanwhile,
// another look at it decides.
func TestRefusedChildIsUnblocked(t *testing.T) {
	const entries = `[{"manager":"kopf-test","operation":"Apply","fieldsV1":{"f:data":{"f:a":{}}}},{"manager":"other","operation":"Update","fieldsV1":{"f:extra":{},"f:data":{"f:b":{}}}},{"manager":"another","operation":"Apply","fieldsV1":{"f:data":{"f:b":{}}}}]`
	remove := func(c *cluster) { delete(c.objects, "one") }
	replace := func(c *cluster) { c.objects["one"].SetUID("another") }
	change := func(c *cluster) { c.objects["one"].SetResourceVersion("500") }
	isBlocked := func(current, _ *unstructured.Unstructured) bool {
		return current != nil && !strings.Contains(fmt.Sprint(entriesOf(current)[0]), "f:b")
	}
	isStored := func(_, u *unstructured.Unstructured) bool {
		stored, _, _ := unstructured.NestedString(u.Object, "data", "added")
		return stored == ""
	}
	always := func(current, _ *unstructured.Unstructured) bool { return current != nil }
	for name, test := range map[string]struct {
		field     string // that the refusal names
		isRefused func(current, u *unstructured.Unstructured) bool
		// beforeGet and beforeRename change the child in the cluster.
		beforeGet, beforeRename func(c *cluster)
		isSame                  bool // the handler wants the same as before
		entries                 string
		requests                string
		log, err                string
	}{
		"a named field of others":                  {"data.b", isBlocked, nil, nil, false, entries, "apply get rename apply", `"fields"=["data.b"] "managers"=["another" "other"]`, ""},
		"a field of others that is not named":      {"data.a", isBlocked, nil, nil, false, entries, "apply get try rename apply", `"fields"=["data.b"] "managers"=["another" "other"]`, ""},
		"a field that is not ours to remove":       {"extra", isBlocked, nil, nil, false, entries, "apply get", "", "extra belongs to other: remove it there, or declare the handler with kopf.Recreate"},
		"the child is refused nevertheless":        {"data.b", always, nil, nil, false, entries, "apply get rename apply", "", "data.b"},
		"the child is gone":                        {"data.b", isBlocked, remove, nil, false, entries, "apply get get apply", "", ""},
		"the child is another one":                 {"data.b", isBlocked, replace, nil, false, entries, "apply get get apply get rename apply", `"managers"=["another" "other"]`, ""},
		"the child changes meanwhile":              {"data.b", isBlocked, nil, change, false, entries, "apply get rename get apply get rename apply", `"managers"=["another" "other"]`, ""},
		"the child is gone meanwhile":              {"data.b", isBlocked, nil, remove, false, entries, "apply get rename get apply", "", ""},
		"what the API server has added is kept":    {"data.a", isStored, nil, nil, true, `[{"manager":"kopf-test","operation":"Apply","fieldsV1":{"f:data":{}}}]`, "apply get apply", "", ""},
		"what blocks it is removed from that, too": {"data.a", isBlocked, nil, nil, true, entries, "apply get apply try rename apply", `"fields"=["data.b"] "managers"=["another" "other"]`, ""},
		"it is refused with that, too":             {"data.a", always, nil, nil, true, `[{"manager":"kopf-test","operation":"Apply","fieldsV1":{"f:data":{}}}]`, "apply get apply", "", "data.a of map[a:theirs"},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
			o.log = funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
			expect(t, o, "apply one")
			var managed []metav1.ManagedFieldsEntry
			if err := json.Unmarshal([]byte(test.entries), &managed); err != nil {
				t.Fatal(err)
			}
			u := o.objects["one"]
			u.Object["data"], u.Object["extra"] = map[string]any{"a": "theirs", "b": "theirs", "added": "x"}, "theirs"
			u.SetResourceVersion("400")
			u.SetManagedFields(managed)
			o.show(u.DeepCopy())
			o.refuse = func(current, u *unstructured.Unstructured) error {
				if !test.isRefused(current, u) {
					return nil
				}
				if test.beforeGet != nil {
					test.beforeGet(o.cluster)
					test.beforeGet = nil
				}
				refusal := refusedFor(metav1.CauseTypeFieldValueInvalid, test.field)
				var status *apierrors.StatusError
				errors.As(refusal, &status)
				status.ErrStatus.Message = fmt.Sprint(test.field, " of ", u.Object["data"])
				return refusal
			}
			o.try = func([]byte) error { return nil }
			o.beforeRename = func() {
				if test.beforeRename != nil {
					test.beforeRename(o.cluster)
					test.beforeRename = nil
				}
			}
			if !test.isSame {
				o.value = "c"
			}
			got, err := o.step(t)
			if requests := strings.ReplaceAll(strings.Join(got, " "), " one", ""); requests != test.requests {
				t.Errorf("got %s, want %s", requests, test.requests)
			}
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %v, want %s", err, test.err)
			}
			if err != nil && !isRefusedByValidation(err) {
				t.Errorf("%v does not lead to a recreation", err)
			}
			isRemoved := slices.ContainsFunc(lines, func(line string) bool {
				return strings.Contains(line, "are not wanted were removed") && strings.Contains(line, test.log)
			})
			isReported := slices.ContainsFunc(lines, func(line string) bool {
				return strings.Contains(line, "The child is changed") || strings.Contains(line, "is restored")
			})
			if isRemoved != (test.log != "") || isRemoved && !isReported {
				t.Errorf("the log is %v", lines)
			}
		})
	}
}

// A failure ends the attempt, and a conflict leads to another look at the child.
func TestStepsAfterARefusalFail(t *testing.T) {
	lost, conflict := errors.New("connection lost"), apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "one", nil)
	for name, test := range map[string]struct {
		field    string // that the refusal names
		value    string // that the handler wants
		failing  int
		failure  error
		requests string
	}{
		"it cannot be read":                  {"data.b", "c", 2, lost, "apply get"},
		"it cannot be applied as stored":     {"data.b", "b", 3, lost, "apply get apply"},
		"there is no answer to a dry run":    {"data.a", "c", 3, lost, "apply get try"},
		"it changes before the dry run":      {"data.a", "c", 3, conflict, "apply get try get apply get try rename apply"},
		"it cannot be taken over":            {"data.b", "c", 3, lost, "apply get rename"},
		"it changes after it was taken over": {"data.b", "c", 4, conflict, "apply get rename apply get apply"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
			expect(t, o, "apply one")
			u := o.objects["one"]
			u.Object["data"] = map[string]any{"a": "theirs", "b": "theirs"}
			u.SetResourceVersion("400")
			u.SetManagedFields([]metav1.ManagedFieldsEntry{
				{Manager: "kopf-test", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:a":{}}}`)},
				{Manager: "other", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:b":{}}}`)},
			})
			o.show(u.DeepCopy())
			o.value, o.failing, o.failure = test.value, test.failing, test.failure
			o.try = func([]byte) error { return nil }
			o.refuse = func(current, _ *unstructured.Unstructured) error {
				if strings.Contains(fmt.Sprint(entriesOf(current)[0]), "f:b") {
					return nil
				}
				return refusedFor(metav1.CauseTypeFieldValueInvalid, test.field)
			}
			got, err := o.step(t)
			if requests := strings.ReplaceAll(strings.Join(got, " "), " one", ""); requests != test.requests {
				t.Errorf("got %s, want %s", requests, test.requests)
			}
			if mustFail := errors.Is(test.failure, lost); errors.Is(err, lost) != mustFail || (err != nil) != mustFail {
				t.Errorf("got %v", err)
			}
		})
	}
}

// budget is a live child of which the operator has applied a part. Others have set the other members of unions, and
// what is no part of one. The field "default" has no owner.
const budget = `{"metadata":{"resourceVersion":"7","labels":{"team":"x"},"managedFields":[
	{"manager":"kopf","operation":"Apply","fieldsV1":{"f:spec":{"f:selector":{},"f:former":{},"f:shared":{},"f:items":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}},"k:{\"name\":\"left\"}":{".":{},"f:name":{}}}}}},
	{"manager":"other","operation":"Update","fieldsV1":{"f:metadata":{"f:labels":{"f:team":{}}},"f:top":{},"f:more":{"f:far":{}},"f:spec":{"f:min":{},"f:shared":{},"f:replicas":{},"f:list":{},"f:items":{"k:{\"name\":\"a\"}":{"f:url":{}},"k:{\"name\":\"b\"}":{".":{},"f:name":{}},"k:{\"name\":\"left\"}":{"f:url":{}}}}}},
	{"manager":"third","operation":"Apply","fieldsV1":{"f:spec":{"f:min":{},"f:selector":{}}}},
	{"manager":"none","operation":"Update","fieldsV1":{}}
]},"status":{"ready":1},"top":1,"gone/~":2,"more":{"far":1},"spec":{"selector":{"old":"x"},"former":1,"shared":1,"min":1,"replicas":3,"default":4,"list":["x"],"free":["x"],"value":1,
	"items":[{"name":"b"},{"name":"left","url":"v"},{"name":"a","url":"u"}]}}`

const budgetWanted = `{"metadata":{"labels":{}},"more":{},"gone/~":2,"new":[1],"spec":{"selector":{"new":"y"},"max":1,"list":["y"],"free":["y"],"value":{"x":1},"kept":{"x":1},"items":[{"name":"a","service":"s"},{"name":"c"}]}}`

func TestPartsOfOthersAreFound(t *testing.T) {
	found := map[string]string{}
	for _, b := range refusedChild(t, budget, budgetWanted).foreign() {
		found[b.at.String()] = fmt.Sprint(b.ours, " ", strings.Join(b.others, ","))
	}
	want := map[string]string{
		"top": "false other", "more.far": "true other", "spec.min": "true other,third", "spec.shared": "true other", "spec.replicas": "true other",
		"spec.items[name=a].url": "true other", "spec.items[name=b]": "false other", "spec.items[name=left]": "true other",
	}
	if !reflect.DeepEqual(found, want) {
		t.Errorf("got %v, want %v", found, want)
	}
}

// What a dry run changes is what an apply would, except for the parts that are left out.
func TestPatchesMakeWhatIsWanted(t *testing.T) {
	c := refusedChild(t, budget, budgetWanted)
	var parts []blocker
	for _, b := range c.foreign() {
		if slices.Contains([]string{"top", "spec.min", "spec.items[name=a].url", "spec.items[name=b]"}, b.at.String()) {
			parts = append(parts, b)
		}
	}
	text := c.patchWithout(parts)
	want := `[{"op":"replace","path":"/metadata/resourceVersion","value":"7"},
		{"op":"add","path":"/gone~1~0","value":2},
		{"op":"add","path":"/more","value":{"far":1}},
		{"op":"add","path":"/new","value":[1]},
		{"op":"add","path":"/spec","value":{"selector":{"new":"y"},"shared":1,"replicas":3,"default":4,"max":1,"list":["y"],"free":["y"],"value":{"x":1},"kept":{"x":1},
			"items":[{"name":"left","url":"v"},{"name":"a","service":"s"},{"name":"c"}]}},
		{"op":"remove","path":"/top"}]`
	if got, want := parsed(t, string(text)), parsed(t, want); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if !reflect.DeepEqual(c.live.Object, decoded(t, budget)) || !reflect.DeepEqual(c.content, decoded(t, budgetWanted)) {
		t.Error("the object was changed")
	}
}

func parsed(t *testing.T, text string) (value any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestNearestPartsAreFirst(t *testing.T) {
	parts := refusedChild(t, budget, budgetWanted).foreign()
	for fields, want := range map[string]string{
		"":                         "",
		"other":                    "",
		"more.x":                   "more.far",
		"spec.items[2].service":    "spec.items[name=a].url, spec.items[name=b], spec.items[name=left], spec.min, spec.replicas, spec.shared",
		"spec.items[7]":            "spec.items[name=b], spec.items[name=left], spec.items[name=a].url, spec.min, spec.replicas, spec.shared",
		"spec.min.x.y":             "spec.min, spec.items[name=b], spec.items[name=left], spec.items[name=a].url, spec.replicas, spec.shared",
		"spec.items[1] spec.items": "spec.items[name=left], spec.items[name=b], spec.items[name=a].url, spec.min, spec.replicas, spec.shared",
		"top more":                 "top, more.far",
	} {
		var causes []metav1.StatusCause
		for _, field := range strings.Fields(fields) {
			causes = append(causes, metav1.StatusCause{Field: field})
		}
		if got := strings.Join(namesOf(nearest(parts, causes)), ", "); got != want {
			t.Errorf("%q: got %s, want %s", fields, got, want)
		}
	}
}

func TestCausesAreCompared(t *testing.T) {
	cause := func(kind, field string) metav1.StatusCause {
		return metav1.StatusCause{Type: metav1.CauseType(kind), Field: field, Message: fmt.Sprint(&field)}
	}
	for name, test := range map[string]struct {
		before, now []metav1.StatusCause
		want        bool
	}{
		"the same with another text": {[]metav1.StatusCause{cause("a", "x")}, []metav1.StatusCause{cause("a", "x")}, false},
		"one more":                   {[]metav1.StatusCause{cause("a", "x")}, []metav1.StatusCause{cause("a", "x"), cause("a", "y")}, false},
		"one of two is gone":         {[]metav1.StatusCause{cause("a", "x"), cause("a", "x")}, []metav1.StatusCause{cause("a", "x")}, true},
		"another field":              {[]metav1.StatusCause{cause("a", "x")}, []metav1.StatusCause{cause("a", "y")}, true},
		"another type":               {[]metav1.StatusCause{cause("a", "x")}, []metav1.StatusCause{cause("b", "x")}, true},
	} {
		if got := isAnswered(test.before, test.now); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// judge returns an API server that refuses patches with some texts. Each is a mistake of a field.
func judge(mistakes map[string]string) func(patch []byte) error {
	return func(patch []byte) error {
		var fields []string
		for _, text := range slices.Sorted(maps.Keys(mistakes)) {
			if strings.Contains(string(patch), text) {
				fields = append(fields, mistakes[text])
			}
		}
		if len(fields) == 0 {
			return nil
		}
		return refusedFor(metav1.CauseTypeFieldValueInvalid, fields...)
	}
}

func TestDryRunsFindWhatBlocks(t *testing.T) {
	resource := schema.GroupResource{Resource: "budgets"}
	answer := func(err error) func([]byte) error { return func([]byte) error { return err } }
	for name, test := range map[string]struct {
		try    func(patch []byte) error
		known  []string // blockers that the refusal names
		causes []string
		found  []string
		named  string // in the error
		tries  int
	}{
		"a member of a union":              {judge(map[string]string{`"min"`: "spec"}), nil, []string{"spec"}, []string{"spec.min"}, "", 4},
		"the nearest one":                  {judge(map[string]string{`"url":"u"`: "spec.items[2].service"}), nil, []string{"spec.items[2].service"}, []string{"spec.items[name=a].url"}, "", 1},
		"two":                              {judge(map[string]string{`"url":"u"`: "spec.items[2]", `"min"`: "spec"}), nil, []string{"spec", "spec.items[2]"}, []string{"spec.items[name=a].url", "spec.min"}, "", 4},
		"one besides one that is known":    {judge(map[string]string{`"replicas"`: "spec", `"url":"u"`: "spec.items[2]"}), []string{"spec.items[name=a].url"}, []string{"spec"}, []string{"spec.items[name=a].url", "spec.replicas"}, "", 5},
		"what is known is all":             {judge(map[string]string{`"url":"u"`: "spec.items[2]"}), []string{"spec.items[name=a].url"}, []string{"spec"}, []string{"spec.items[name=a].url"}, "", 1},
		"an item of others":                {judge(map[string]string{`"name":"b"`: "spec.items[0]"}), nil, []string{"spec.items[0]"}, nil, "spec.items[name=b] belongs to other", 1},
		"a field of the object itself":     {judge(map[string]string{`"add","path":"/top"`: "top"}), nil, []string{"top.x"}, nil, "top belongs to other", 1},
		"a part of the reasons":            {judge(map[string]string{`"min"`: "spec", `"resourceVersion"`: "spec.max", "7": "spec.max"}), nil, []string{"spec", "spec.max"}, nil, "spec.min belongs to other, third", 6},
		"nothing helps":                    {judge(map[string]string{"7": "spec"}), nil, []string{"spec"}, nil, "", 6},
		"nothing helps, and one was known": {judge(map[string]string{"7": "spec"}), []string{"spec.min"}, []string{"spec"}, nil, "", 6},
		"nothing of others is near":        {judge(map[string]string{"7": "new"}), nil, []string{"new"}, nil, "", 0},
		"the child has changed":            {answer(apierrors.NewConflict(resource, "one", nil)), nil, []string{"spec"}, nil, "-", 1},
		"the child is gone":                {answer(apierrors.NewNotFound(resource, "one")), nil, []string{"spec"}, nil, "-", 1},
		"a webhook without dry runs":       {answer(apierrors.NewBadRequest("no dry runs")), nil, []string{"spec.min"}, nil, "spec.min belongs to other, third", 1},
		"a policy":                         {answer(apierrors.NewForbidden(resource, "one", errors.New("frozen"))), nil, []string{"spec"}, nil, "frozen", 1},
	} {
		t.Run(name, func(t *testing.T) {
			api := &cluster{try: test.try}
			c := refusedChild(t, budget, budgetWanted)
			c.child = &child{Key: Key{Name: "one"}, resource: configMaps}
			known := slices.DeleteFunc(c.foreign(), func(b blocker) bool { return !slices.Contains(test.known, b.at.String()) })
			refusal := refusedFor(metav1.CauseTypeFieldValueInvalid, test.causes...)
			r := &run{api: api}
			found, err := r.search(t.Context(), c, known, causesOf(refusal), refusal)
			if names := namesOf(found); !slices.Equal(names, test.found) {
				t.Errorf("found %v, want %v", names, test.found)
			}
			if len(api.requests) != test.tries {
				t.Errorf("%d dry runs, want %d", len(api.requests), test.tries)
			}
			switch {
			case test.named == "-":
				if !errors.Is(err, errChanged) {
					t.Errorf("got %v", err)
				}
			case test.found != nil:
				if err != nil {
					t.Error(err)
				}
			case test.named == "":
				var foreign *foreignError
				if !errors.Is(err, refusal) || errors.As(err, &foreign) {
					t.Errorf("got %v", err)
				}
			case err == nil || !strings.Contains(err.Error(), test.named):
				t.Errorf("got %v, want %s", err, test.named)
			}
		})
	}
}

func TestDryRunsAreFew(t *testing.T) {
	var fields, values []string
	for i := range 20 {
		fields, values = append(fields, fmt.Sprintf(`"f:x%d":{}`, i)), append(values, fmt.Sprintf(`"x%d":1`, i))
	}
	live := `{"metadata":{"managedFields":[{"manager":"other","operation":"Update","fieldsV1":{"f:spec":{` + strings.Join(fields, ",") + `}}}]},"spec":{` + strings.Join(values, ",") + `}}`
	for message, tries := range map[string]int{"no": maxSearch, "Invalid value: 1: field is immutable": 0} {
		api := &cluster{try: judge(map[string]string{"spec": "spec"})}
		c := refusedChild(t, live, `{"spec":{"y":1}}`)
		c.child = &child{Key: Key{Name: "one"}, resource: configMaps}
		refusal := errors.New("refused")
		r := &run{api: api}
		found, err := r.search(t.Context(), c, nil, []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec", Message: message}}, refusal)
		if found != nil || !errors.Is(err, refusal) || len(api.requests) != tries {
			t.Errorf("%s: found %v, %v after %d dry runs", message, found, err, len(api.requests))
		}
	}
}
