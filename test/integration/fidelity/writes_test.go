package fidelity

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestWritesWithoutAChange(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		made := s.create(s.things(), "one", `,"spec":{"size":1}`)
		watch := s.watch(s.things(), "resourceVersion="+made.GetResourceVersion())
		for name, patch := range map[string]string{
			"the same value": `{"spec":{"size":1}}`, "nothing": `{}`, "null for a missing field": `{"spec":{"note":null}}`,
			"an unknown field": `{"spec":{"unknown":1}}`, "the status of the object": `{"status":{"seen":1}}`,
		} {
			if got := s.merge(s.things("one"), patch, 200); got.GetResourceVersion() != made.GetResourceVersion() {
				t.Errorf("%s makes a version", name)
			}
		}
		if got := s.must(http.MethodPut, s.things("one"), text(s, made), 200); got.GetResourceVersion() != made.GetResourceVersion() {
			t.Error("an update without a change makes a version")
		}
		s.merge(s.things("one"), `{"spec":{"size":2}}`, 200)
		if seen := watch.expect("MODIFIED", "one"); number64(seen, "spec", "size") != 2 {
			t.Errorf("writes without a change have events: %v", seen.Object)
		}
	})
}

func TestLastFinalizer(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.create(s.things(), "one", "")
		s.merge(s.things("one"), `{"metadata":{"finalizers":["kopf.dev/a"]}}`, 200)
		deleting := s.must(http.MethodDelete, s.things("one"), "", 200)
		if deleting.GetDeletionTimestamp() == nil || deleting.GetKind() != "Thing" || *deleting.GetDeletionGracePeriodSeconds() != 0 {
			t.Errorf("the object is not marked: %v", deleting.Object)
		}
		if deleting.GetGeneration() != 2 {
			t.Errorf("the deletion makes generation %d", deleting.GetGeneration())
		}
		if again := s.must(http.MethodDelete, s.things("one"), "", 200); again.GetResourceVersion() != deleting.GetResourceVersion() {
			t.Error("a second deletion makes a version")
		}
		watch := s.watch(s.things(), "resourceVersion="+deleting.GetResourceVersion())
		gone := s.merge(s.things("one"), `{"metadata":{"finalizers":null}}`, 200)
		if gone.GetResourceVersion() != deleting.GetResourceVersion() || len(gone.GetFinalizers()) != 0 {
			t.Errorf("got version %s with %v, want the unchanged version %s", gone.GetResourceVersion(), gone.GetFinalizers(), deleting.GetResourceVersion())
		}
		last := watch.expect("DELETED", "one")
		if last.GetResourceVersion() == deleting.GetResourceVersion() || len(last.GetFinalizers()) != 1 {
			t.Errorf("the event has version %s and finalizers %v", last.GetResourceVersion(), last.GetFinalizers())
		}
		s.must(http.MethodGet, s.things("one"), "", 404)
	})
}

func TestNoNewFinalizersWhileDeleting(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.create(s.things(), "one", "")
		s.merge(s.things("one"), `{"metadata":{"finalizers":["kopf.dev/a"]}}`, 200)
		s.must(http.MethodDelete, s.things("one"), "", 200)
		s.merge(s.things("one"), `{"metadata":{"finalizers":["kopf.dev/a","kopf.dev/b"]}}`, 422)
		s.merge(s.things("one"), `{"metadata":{"annotations":{"a":"b"}}}`, 200)
	})
}

func TestSubresourceThatIsNotDefined(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.must(http.MethodPost, s.plains(), `{"apiVersion":"`+s.group+`/v1","kind":"Plain","metadata":{"name":"one"}}`, 201)
		refusal := s.merge(s.plains("one", "status"), `{"status":{"seen":1}}`, 404)
		if got := fmt.Sprintf("%v %v %v", field(refusal, "reason"), field(refusal, "details", "name"), field(refusal, "details", "kind")); got != "NotFound one plains" {
			t.Errorf("got %s", got)
		}
	})
}

func TestDeletionWithoutFinalizers(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		made := s.create(s.things(), "one", "")
		watch := s.watch(s.things(), "resourceVersion="+made.GetResourceVersion())
		for precondition, value := range map[string]string{"uid": "other", "resourceVersion": "1"} {
			s.must(http.MethodDelete, s.things("one"), fmt.Sprintf(`{"preconditions":{%q:%q}}`, precondition, value), 409)
		}
		status := s.must(http.MethodDelete, s.things("one"), `{"preconditions":{"uid":"`+string(made.GetUID())+`"}}`, 200)
		if status.GetKind() != "Status" || field(status, "details", "uid") != string(made.GetUID()) || field(status, "status") != "Success" {
			t.Errorf("got %v", status.Object)
		}
		if last := watch.expect("DELETED", "one"); last.GetResourceVersion() == made.GetResourceVersion() || last.GetDeletionTimestamp() != nil {
			t.Errorf("got %v", last.Object)
		}
		s.must(http.MethodDelete, s.things("one"), "", 404)
	})
}

func TestPropagation(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		for policy, finalizer := range map[string]string{"Orphan": "orphan", "Foreground": "foregroundDeletion"} {
			name := strings.ToLower(policy)
			s.create(s.things(), name, "")
			got := s.must(http.MethodDelete, s.things(name), `{"propagationPolicy":"`+policy+`"}`, 200)
			if fmt.Sprint(got.GetFinalizers()) != "["+finalizer+"]" || got.GetDeletionTimestamp() == nil {
				t.Errorf("%s: got %v", policy, got.Object)
			}
		}
	})
}

func TestIdentity(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		made := s.create(s.things(), "one", "")
		s.merge(s.things("one"), `{"metadata":{"uid":"other"},"spec":{"size":1}}`, 422)
		status := s.merge(s.things("one", "status"), `{"metadata":{"uid":"other"},"status":{"seen":1}}`, 200)
		if number64(status, "status", "seen") != 1 || status.GetUID() != made.GetUID() {
			t.Errorf("got %v", status.Object)
		}
		s.merge(s.things("one"), `{"metadata":{"name":"two"}}`, 400)
		s.merge(s.things("one"), `{"metadata":{"resourceVersion":"`+made.GetResourceVersion()+`"},"spec":{"size":1}}`, 409)
		s.merge(s.things("one", "status"), `{"metadata":{"resourceVersion":"`+made.GetResourceVersion()+`"},"status":{"seen":2}}`, 409)
		s.merge(s.things("two"), `{}`, 404)
		s.must(http.MethodPost, s.things(), s.body("Thing", "one", ""), 409)
		s.must(http.MethodPost, s.things(), s.body("Thing", "", ""), 422)
		s.must(http.MethodPost, s.things(), s.body("Thing", "Wrong_Name", ""), 422)
		s.must(http.MethodPost, s.things(), s.body("Plain", "two", ""), 422)
		s.must(http.MethodPut, s.things("one"), s.body("Thing", "one", ""), 422)
		s.must(http.MethodPut, s.things("one"), s.body("Thing", "two", ""), 400)
	})
}

func TestGeneration(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.create(s.things(), "one", "")
		s.create(s.plains(), "one", "")
		steps := []struct {
			name, patch        string
			separate, together int64
		}{
			{"labels", `{"metadata":{"labels":{"a":"b"}}}`, 1, 1},
			{"spec", `{"spec":{"size":1}}`, 2, 2},
			{"status", `{"status":{"seen":1}}`, 2, 3},
			{"generation", `{"metadata":{"generation":9}}`, 2, 3},
		}
		for _, step := range steps {
			if got := s.merge(s.things("one"), step.patch, 200); got.GetGeneration() != step.separate {
				t.Errorf("%s: got %d with a subresource", step.name, got.GetGeneration())
			}
			if got := s.merge(s.plains("one"), step.patch, 200); got.GetGeneration() != step.together {
				t.Errorf("%s: got %d without a subresource", step.name, got.GetGeneration())
			}
		}
		if got := s.merge(s.things("one", "status"), `{"status":{"seen":1},"spec":{"size":7}}`, 200); got.GetGeneration() != 2 || number64(got, "spec", "size") != 1 {
			t.Errorf("the status changes more: %v", got.Object)
		}
		s.do(http.MethodGet, s.plains("one", "status"), "", "")
		s.must(http.MethodGet, s.plains("one", "status"), "", 404)
	})
}

func TestNulls(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.create(s.things(), "one", `,"spec":{"size":1,"note":"a","open":{"x":null,"y":{"z":null}},"maybe":null,"color":null}`)
		got := s.must(http.MethodGet, s.things("one"), "", 200)
		want := `map[color:red maybe:<nil> note:a open:map[x:<nil> y:map[z:<nil>]] size:1]`
		if text := fmt.Sprint(got.Object["spec"]); text != want {
			t.Errorf("got %s, want %s", text, want)
		}
		got = s.merge(s.things("one"), `{"spec":{"note":null,"open":{"x":null,"new":{"a":null,"b":1}}}}`, 200)
		want = `map[color:red maybe:<nil> open:map[new:map[b:1] y:map[z:<nil>]] size:1]`
		if text := fmt.Sprint(got.Object["spec"]); text != want {
			t.Errorf("got %s, want %s", text, want)
		}
		s.merge(s.things("one"), `{"spec":{"size":"text"}}`, 422)
		s.merge(s.things("one"), `{"metadata":null}`, 400)
	})
}

func TestPatchFormats(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.create(s.things(), "one", `,"spec":{"size":1}`)
		patch := func(path, format, body string, code int) *object {
			t.Helper()
			return s.mustAs(http.MethodPatch, path, format, body, code)
		}
		if got := patch(s.things("one"), jsonPatchType, `[{"op":"test","path":"/spec/size","value":1},{"op":"replace","path":"/spec/size","value":2}]`, 200); number64(got, "spec", "size") != 2 {
			t.Errorf("got %v", got.Object)
		}
		patch(s.things("one"), jsonPatchType, `[{"op":"test","path":"/spec/size","value":1}]`, 422)
		patch(s.things("one"), jsonPatchType, `[{"op":"remove","path":"/spec/none"}]`, 422)
		patch(s.things("one"), jsonPatchType, `{"op":"test"}`, 400)
		patch(s.things("one"), strategicType, `{}`, 415)
		patch(s.things("one"), "text/plain", `{}`, 415)
		patch(s.things("one"), mergeType, `{`, 400)
		s.must(http.MethodPost, s.core("services"), `{"apiVersion":"v1","kind":"Service","metadata":{"name":"one"},"spec":{"type":"ClusterIP","clusterIP":"None","ports":[{"port":80,"targetPort":80,"protocol":"TCP","name":"a"}]}}`, 201)
		got := patch(s.core("services/one"), strategicType, `{"spec":{"ports":[{"port":81,"targetPort":81,"protocol":"TCP","name":"b"}]}}`, 200)
		if ports := field(got, "spec", "ports").([]any); len(ports) != 2 {
			t.Errorf("the lists are not merged: %v", ports)
		}
	})
}

func TestSchemas(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		got := s.create(s.things(), "one", `,"spec":{"unknown":1,"open":{"known":1}},"extra":1,"status":{"seen":1}`)
		if want := `map[color:red open:map[known:1]]`; fmt.Sprint(got.Object["spec"]) != want || got.Object["extra"] != nil || got.Object["status"] != nil {
			t.Errorf("got %v", got.Object)
		}
		for name, spec := range map[string]string{
			"a wrong type": `{"size":"a"}`, "a repeated tag": `{"tags":["a","a"]}`, "a repeated key": `{"ports":[{"name":"a"},{"name":"a"}]}`,
			"a missing key": `{"ports":[{"port":1}]}`, "a broken rule": `{"size":2,"max":1}`,
		} {
			if code, answer := s.do(http.MethodPost, s.things(), jsonType, s.body("Thing", "two", `,"spec":`+spec)); code != 422 {
				t.Errorf("%s: got %d %v", name, code, answer.Object)
			}
		}
		s.must(http.MethodPost, s.things()+"?fieldValidation=Strict", s.body("Thing", "two", `,"spec":{"unknown":1}`), 400)
		s.merge(s.things("one", "status"), `{"status":{"seen":"text"}}`, 422)
		s.merge(s.things("one"), `{"metadata":{"annotations":{"a":1}}}`, 422)
	})
}

func TestDefaultsOfTheStatus(t *testing.T) {
	const schema = `{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
		"status":{"type":"object","default":{"seen":-1},"properties":{"seen":{"type":"integer","default":-1},"other":{"type":"integer"}}}}}`
	onBoth(t, func(t *testing.T, s *server) {
		s.defineWith(schema, "gauges", `{"status":{}}`, "v1")
		path := s.path("gauges", "v1", "one")
		for step, got := range map[string]*object{
			"created": s.must(http.MethodPost, s.path("gauges", "v1"), s.body("Gauge", "one", `,"status":{"seen":3}`), 201),
			"read":    s.must(http.MethodGet, path, "", 200),
		} {
			if want := "map[seen:-1]"; fmt.Sprint(got.Object["status"]) != want {
				t.Errorf("%s: got %v", step, got.Object)
			}
		}
		s.merge(path+"/status", `{"status":{"other":2}}`, 200)
		if got := s.merge(path+"/status", `{"status":{"seen":null}}`, 200); fmt.Sprint(got.Object["status"]) != "map[other:2 seen:-1]" {
			t.Errorf("got %v", got.Object)
		}
		if got := s.merge(path, `{"spec":{"a":1}}`, 200); got.GetGeneration() != 2 {
			t.Errorf("got %v", got.Object)
		}
	})
}

func TestDryRun(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.must(http.MethodPost, s.things()+"?dryRun=All", s.body("Thing", "one", ""), 201)
		s.must(http.MethodGet, s.things("one"), "", 404)
		made := s.create(s.things(), "one", "")
		s.must(http.MethodPost, s.things()+"?dryRun=All", s.body("Thing", "one", ""), 409)
		if got := s.merge(s.things("one")+"?dryRun=All", `{"spec":{"size":1}}`, 200); number64(got, "spec", "size") != 1 || got.GetResourceVersion() != made.GetResourceVersion() {
			t.Errorf("got %v", got.Object)
		}
		s.merge(s.things("one")+"?dryRun=All", `{"spec":{"size":"a"}}`, 422)
		s.must(http.MethodDelete, s.things("one"), `{"dryRun":["All"]}`, 200)
		if got := s.must(http.MethodGet, s.things("one"), "", 200); got.GetResourceVersion() != made.GetResourceVersion() {
			t.Error("a dry run has changed the object")
		}
	})
}

func TestLargeRequests(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.create(s.things(), "one", "")
		s.merge(s.things("one"), `{"spec":{"note":"`+strings.Repeat("x", 4<<20)+`"}}`, 413)
		s.merge(s.things("one"), `{"metadata":{"annotations":{"a":"`+strings.Repeat("x", 300_000)+`"}}}`, 422)
	})
}
