package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/hack/envtest/assets"
	"github.com/kopf-go/kopf/internal/controlplane"
)

// callHook sends a request to the hook.
func callHook(h *syncHook, body string) *httptest.ResponseRecorder {
	recorded := httptest.NewRecorder()
	h.ServeHTTP(recorded, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
	return recorded
}

// emptyField matches fields that Go types have without a value.
var emptyField = regexp.MustCompile(`:(0|\{\}|\[\]|null|"")[,}]`)

func TestTheHookAnswersWithTheChildrenOfTheOtherSubjects(t *testing.T) {
	tally := &tally{}
	tally.expected.Store(&expectedCall{name: "example-00007"})
	hook := newSyncHook(tally)
	recorded := callHook(hook, `{"parent":{"metadata":{"name":"example-00007"},"spec":{"host":"h.example.com","revision":2}},"children":{"ConfigMap.v1":{}}}`)
	var answer struct {
		Status   ExampleStatus
		Children []unstructured.Unstructured
	}
	if err := json.Unmarshal(recorded.Body.Bytes(), &answer); err != nil || recorded.Code != http.StatusOK || answer.Status.Revision != 2 {
		t.Fatalf("%v %d %s", err, recorded.Code, recorded.Body)
	}
	var kinds []string
	wanted := childrenFor("example-00007", "h.example.com", 2)
	for i, child := range answer.Children {
		kinds = append(kinds, child.GetAPIVersion()+" "+child.GetKind())
		got := reflect.New(reflect.TypeOf(wanted[i]).Elem()).Interface().(client.Object)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(child.Object, got, true); err != nil {
			t.Error(err)
		}
		if text, err := json.Marshal(child.Object); err != nil || emptyField.Match(text) {
			t.Errorf("%v: an engineer would not write %s", err, text)
		}
		got.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		if !equality.Semantic.DeepEqual(got, wanted[i]) {
			t.Errorf("got  %+v\nwant %+v", got, wanted[i])
		}
	}
	if want := "apps/v1 Deployment,v1 Service,v1 ConfigMap,v1 Secret,v1 ServiceAccount"; strings.Join(kinds, ",") != want {
		t.Errorf("got %v", kinds)
	}
	select {
	case <-hook.called:
	default:
		t.Error("the first call was not reported")
	}
	if tally.snapshot().Called == 0 {
		t.Error("the time of the call was not noted")
	}
}

func TestTheHookWantsNoChildrenOfTheProbe(t *testing.T) {
	hook := newSyncHook(&tally{})
	if answer := callHook(hook, `{"parent":{"metadata":{"name":"probe"}}}`); strings.TrimSpace(answer.Body.String()) != `{"status":{"revision":0},"children":[]}` {
		t.Errorf("got %s", answer.Body)
	}
	if answer := callHook(hook, "no JSON"); answer.Code != http.StatusBadRequest {
		t.Errorf("got %d", answer.Code)
	}
}

// prepared returns a measurement of Metacontroller with a control plane.
func prepared(t *testing.T) (*measurement, *controlplane.ControlPlane) {
	t.Helper()
	programs, err := assets.Find()
	if err != nil {
		t.Fatal(err)
	}
	plane, err := controlplane.Start(programs, controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	m := &measurement{subject: subjects[childrenExternal], options: options{size: 1024, clients: 1}}
	if err := m.prepare(t.Context(), plane.Config()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.observer.stop)
	return m, plane
}

func TestInstallPreparesAControlPlaneForEveryStart(t *testing.T) {
	m, plane := prepared(t)
	m.observer.expectGone(1)
	remove, err := install(t.Context(), plane.Config(), "http://127.0.0.1:1/")
	if err != nil {
		t.Fatal(err)
	}
	if err := remove(); err != nil { // the object that triggers the hook
		t.Error(err)
	}
	if err := m.observer.wait(t.Context()); err != nil {
		t.Error(err)
	}

	seesStatus(t, m)
	if remove, err = install(t.Context(), plane.Config(), "http://127.0.0.1:2/"); err != nil {
		t.Fatal(err)
	}
	if err := remove(); err != nil { // nothing: there are objects
		t.Error(err)
	}
	hookIs(t, plane, "http://127.0.0.1:2/")
	m.observer.expectGone(1)
	if err := m.load.delete(t.Context(), 1); err != nil {
		t.Error(err)
	}
	if err := m.observer.wait(t.Context()); err != nil {
		t.Error(err)
	}
}

// seesStatus checks that the observer sees a revision in the status, and no other.
func seesStatus(t *testing.T, m *measurement) {
	t.Helper()
	m.observer.expectHandled(1, secondRevision)
	if err := m.load.create(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	for _, revision := range []string{"1", "2"} {
		select {
		case <-m.observer.done:
			t.Error("the object was not handled yet")
		default:
		}
		patch := m.load.about(m.load.api.Patch(types.MergePatchType)).Name(name(1)).SubResource("status").Body([]byte(`{"status":{"revision":` + revision + `}}`))
		if err := patch.Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.observer.wait(t.Context()); err != nil {
		t.Error(err)
	}
}

func hookIs(t *testing.T, plane *controlplane.ControlPlane, want string) {
	t.Helper()
	api, err := client.New(plane.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	controller := compositeController("")
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(controller), controller); err != nil {
		t.Fatal(err)
	}
	if url, _, err := unstructured.NestedString(controller.Object, "spec", "hooks", "sync", "webhook", "url"); err != nil || url != want {
		t.Errorf("got %q (%v)", url, err)
	}
}

func TestTheReportComparesWithMetacontroller(t *testing.T) {
	phase := func(cpu time.Duration, writes, children float64) ChildrenPhase {
		return ChildrenPhase{Phase: Phase{CPUPerObject: cpu, WritesPerObject: writes}, ChildrenPerObject: children}
	}
	measured := report{Children: []childrenFigures{
		{Subject: childrenEnsured, Create: phase(1000, 1, 5), Update: phase(500, 1, 1), Drift: phase(200, 0, 1)},
		{Subject: childrenHandwritten},
		{Subject: childrenExternal, Create: phase(2000, 3, 5), Update: phase(1000, 1, 3), Drift: phase(400, 1, 1)},
	}}
	var out bytes.Buffer
	err := measured.print(&out)
	want := "relative to children+metacontroller, CPU and writes per object: create 0.50 and 0.75, update 0.50 and 0.50, a changed child 0.50 and 0.50\n"
	if err != nil || !strings.HasSuffix(out.String(), want) {
		t.Errorf("%v\n%s", err, &out)
	}
}

func TestTheTimeUntilTheCallIsMeasuredWithoutTheProxy(t *testing.T) {
	var names []string
	for _, step := range metacontrollerSteps(&measurement{role: role{Subject: childrenExternal}}) {
		names = append(names, step.name)
	}
	if got := strings.Join(names, " "); got != "start warm up create rest update drift direct react restart" {
		t.Errorf("got %s", got)
	}
}
