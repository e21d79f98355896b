package fidelity

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// apply applies fields of the thing "one" as a field manager.
func (s *server) apply(manager, fields string, code int) *object {
	s.t.Helper()
	return s.mustAs(http.MethodPatch, s.things("one")+"?fieldManager="+manager, applyType, s.body("Thing", "one", fields), code)
}

func TestApply(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		made := s.apply("a", `,"spec":{"size":1,"ports":[{"name":"x","port":1}],"tags":["p"]}`, 201)
		if made.GetGeneration() != 1 || number64(made, "spec", "size") != 1 || len(made.GetManagedFields()) != 1 {
			t.Errorf("got %v", made.Object)
		}
		if again := s.apply("a", `,"spec":{"size":1,"ports":[{"name":"x","port":1}],"tags":["p"]}`, 200); again.GetResourceVersion() != made.GetResourceVersion() {
			t.Error("the same again makes a version")
		}
		conflict := s.apply("b", `,"spec":{"size":2}`, 409)
		causes, _ := field(conflict, "details", "causes").([]any)
		if len(causes) != 1 || fmt.Sprint(causes[0]) != `map[field:.spec.size message:conflict with "a" reason:FieldManagerConflict]` {
			t.Errorf("got %v", conflict.Object)
		}
		merged := s.apply("b", `,"spec":{"ports":[{"name":"y","port":2}],"tags":["q"]}`, 200)
		if got := fmt.Sprint(field(merged, "spec")); got != "map[color:red ports:[map[name:x port:1] map[name:y port:2]] size:1 tags:[p q]]" {
			t.Errorf("got %s", got)
		}
		forced := s.mustAs(http.MethodPatch, s.things("one")+"?force=true&fieldManager=b", applyType, s.body("Thing", "one", `,"spec":{"size":2}`), 200)
		if got := fmt.Sprint(field(forced, "spec")); got != "map[color:red ports:[map[name:x port:1]] size:2 tags:[p]]" {
			t.Errorf("what is not applied any more stays: %s", got)
		}
		s.mustAs(http.MethodPatch, s.things("one"), applyType, s.body("Thing", "one", ""), 422)
	})
}

// A version in an apply is a precondition for an object that exists, and is ignored if there is
// none. So a version that no object has creates an object, or fails.
func TestApplyThatOnlyCreates(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		apply := func(metadata string, code int) *object {
			t.Helper()
			body := strings.Replace(s.body("Thing", "one", `,"spec":{"size":1}`), `"metadata":{`, `"metadata":{`+metadata+`,`, 1)
			return s.mustAs(http.MethodPatch, s.things("one")+"?force=true&fieldManager=a", applyType, body, code)
		}
		apply(`"uid":"0815"`, 409)
		made := apply(`"resourceVersion":"1"`, 201)
		apply(`"resourceVersion":"1"`, 409)
		apply(`"uid":"0815"`, 422) // a uid is immutable
		if again := apply(fmt.Sprintf(`"uid":%q`, made.GetUID()), 200); again.GetResourceVersion() != made.GetResourceVersion() {
			t.Error("the same again makes a version")
		}
	})
}

func TestOwnersOfUpdates(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.create(s.things(), "one", `,"spec":{"size":1}`)
		s.mustAs(http.MethodPatch, s.things("one", "status")+"?fieldManager=x", mergeType, `{"status":{"seen":1}}`, 200)
		got := s.mustAs(http.MethodPatch, s.things("one")+"?fieldManager=x", mergeType, `{"spec":{"note":"a"}}`, 200)
		var owners []string
		for _, entry := range got.GetManagedFields() {
			owners = append(owners, fmt.Sprintf("%s %s %s %s", entry.Manager, entry.Operation, entry.Subresource, entry.FieldsV1.GetRawString()))
		}
		slices.Sort(owners) // Kubernetes sorts by the second of the write first
		want := `[fidelity Update  {"f:spec":{".":{},"f:color":{},"f:size":{}}} x Update  {"f:spec":{"f:note":{}}} x Update status {"f:status":{".":{},"f:seen":{}}}]`
		if fmt.Sprint(owners) != want {
			t.Errorf("got  %v\nwant %s", owners, want)
		}
		conflict := s.apply("b", `,"spec":{"size":2}`, 409)
		if field(conflict, "reason") != "Conflict" {
			t.Errorf("got %v", conflict.Object)
		}
	})
}
