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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

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
			c.applied = applied{child: &child{Key: Key{Name: "one"}, resource: configMaps}}
			known := slices.DeleteFunc(c.foreign(), func(b blocker) bool { return !slices.Contains(test.known, b.at.String()) })
			refusal := refusedFor(metav1.CauseTypeFieldValueInvalid, test.causes...)
			r := &run{Converger: &Converger{api: api}}
			found, err := r.search(t.Context(), c, known, causesOf(refusal), refusal)
			if names := namesOf(found); !slices.Equal(names, test.found) {
				t.Errorf("found %v, want %v", names, test.found)
			}
			if len(api.requests) != test.tries {
				t.Errorf("%d dry runs, want %d", len(api.requests), test.tries)
			}
			switch {
			case test.found != nil || test.named == "-":
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
		c.applied = applied{child: &child{Key: Key{Name: "one"}, resource: configMaps}}
		refusal := errors.New("refused")
		r := &run{Converger: &Converger{api: api}}
		found, err := r.search(t.Context(), c, nil, []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec", Message: message}}, refusal)
		if found != nil || !errors.Is(err, refusal) || len(api.requests) != tries {
			t.Errorf("%s: found %v, %v after %d dry runs", message, found, err, len(api.requests))
		}
	}
}
