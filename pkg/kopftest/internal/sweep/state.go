package sweep

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// State contains the objects of an API server in a form that makes two runs comparable. Uids, times,
// and generated names are replaced, because they differ in every run.
type State map[string]Object

// Object is one object.
type Object struct {
	// Content is the object without what the server and the operator keep in it for
	// themselves.
	Content map[string]any
	// Progress is how far the operator is with the object.
	Progress any
}

// View is how an operator sees objects.
type View struct {
	// Strip returns a copy of an object without what the operator keeps in it.
	Strip func(raw map[string]any) map[string]any
	// Progress returns how far the operator is with the object.
	Progress func(raw map[string]any) any
	// Ignored are fields that are not compared.
	Ignored [][]string
}

// Take returns the state of objects.
func (v View) Take(objects []*unstructured.Unstructured) State {
	replaced := names{}
	for _, object := range objects {
		replaced[string(object.GetUID())] = "uid of " + nameOf(object)
		if prefix := object.GetGenerateName(); prefix != "" {
			replaced[object.GetName()] = prefix + "…"
		}
	}
	state := State{}
	generated := map[string][]Object{}
	for _, object := range objects {
		content := v.contentOf(object, replaced)
		one := Object{Content: content, Progress: replaced.in(v.Progress(object.Object))}
		name := nameOf(object)
		if prefix := object.GetGenerateName(); prefix != "" {
			generated[name] = append(generated[name], one)
			continue
		}
		state[name] = one
	}
	for name, all := range generated {
		slices.SortFunc(all, func(a, b Object) int { return strings.Compare(textOf(a.Content), textOf(b.Content)) })
		for i, one := range all {
			state[fmt.Sprintf("%s (%d)", name, i+1)] = one
		}
	}
	return state
}

// contentOf returns the compared part of an object.
func (v View) contentOf(object *unstructured.Unstructured, replaced names) map[string]any {
	content := runtime.DeepCopyJSON(v.Strip(object.Object))
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink"} {
		unstructured.RemoveNestedField(content, "metadata", field)
	}
	for _, field := range v.Ignored {
		unstructured.RemoveNestedField(content, field...)
	}
	return replaced.in(content).(map[string]any) //nolint:errcheck // a map remains a map
}

func nameOf(object *unstructured.Unstructured) string {
	name := cmp.Or(object.GetGenerateName(), object.GetName())
	if namespace := object.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return object.GetKind() + " " + name
}

// names are the texts that differ in every run, with their replacements.
type names map[string]string

var uid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// in returns a value with replaced texts. It may change the value.
func (n names) in(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key := range value {
			value[key] = n.in(value[key])
		}
	case []any:
		for i := range value {
			value[i] = n.in(value[i])
		}
	case string:
		return n.text(value)
	}
	return value
}

func (n names) text(value string) string {
	if known, ok := n[value]; ok {
		return known
	}
	if uid.MatchString(value) {
		return "uid"
	}
	if len(value) >= len("2006-01-02T15:04:05Z") {
		if _, err := time.Parse(time.RFC3339, value); err == nil {
			return "time"
		}
	}
	return value
}

// Equals reports whether two runs are equally far.
func (s State) Equals(other State) bool { return reflect.DeepEqual(s, other) }

// Differences describes what is different in another state, in lines.
func (s State) Differences(other State) []string {
	all := maps.Clone(s)
	maps.Copy(all, other)
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		before, isBefore := s[name]
		after, isAfter := other[name]
		switch {
		case !isAfter:
			lines = append(lines, name+" is missing")
		case !isBefore:
			lines = append(lines, name+" is too much: "+textOf(after.Content))
		default:
			lines = append(lines, different(name, before.Content, after.Content)...)
		}
	}
	return lines
}

// different describes the differences of two values.
func different(path string, before, after any) []string {
	a, isMap := before.(map[string]any)
	b, alsoMap := after.(map[string]any)
	if !isMap || !alsoMap {
		if reflect.DeepEqual(before, after) {
			return nil
		}
		return []string{fmt.Sprintf("%s is %s instead of %s", path, textOf(after), textOf(before))}
	}
	all := maps.Clone(a)
	maps.Copy(all, b)
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		lines = append(lines, different(path+"."+key, a[key], b[key])...)
	}
	return lines
}

func textOf(value any) string {
	if value == nil {
		return "absent"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}
