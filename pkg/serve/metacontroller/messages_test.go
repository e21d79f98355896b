package metacontroller

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func newObject(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	return obj
}

// The requests are those of Metacontroller for the same objects.
func TestRequests(t *testing.T) {
	controller := map[string]any{"kind": "CompositeController"}
	objects := []*unstructured.Unstructured{
		newObject("v1", "Pod", "here", "a"), newObject("v1", "Pod", "there", "b"), newObject("apps/v1", "Deployment", "here", "c"), newObject("v1", "Namespace", "", "d"),
	}
	requestOf := func(names naming, parent *unstructured.Unstructured) string {
		children := groups{groupOf(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}): {}}
		for _, each := range objects {
			names.add(children, each)
		}
		data, err := json.Marshal(&compositeRequest{controller, parent.Object, children, groups{}, false})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	const podA = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"here"}}`
	const podB = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b","namespace":"there"}}`
	const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"c","namespace":"here"}}`
	const namespace = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"d"}}`
	const inNamespace = `{"controller":{"kind":"CompositeController"},"parent":{"apiVersion":"example.com/v1","kind":"Set","metadata":{"name":"one","namespace":"here"}},"children":`
	const inNone = `{"controller":{"kind":"CompositeController"},"parent":{"apiVersion":"example.com/v1","kind":"Set","metadata":{"name":"one"}},"children":`
	const end = `,"related":{},"finalizing":false}`
	namespaced := newObject("example.com/v1", "Set", "here", "one")
	clustered := newObject("example.com/v1", "Set", "", "one")
	for name, test := range map[string]struct{ got, want string }{
		"v1, in a namespace": {
			requestOf(naming{false, "here"}, namespaced),
			inNamespace + `{"Deployment.apps/v1":{"c":` + deployment + `},"Pod.v1":{"a":` + podA + `},"Secret.v1":{}}` + end,
		},
		"v1, in no namespace": {
			requestOf(naming{false, ""}, clustered),
			inNone + `{"Deployment.apps/v1":{"here/c":` + deployment + `},"Namespace.v1":{"d":` + namespace + `},"Pod.v1":{"here/a":` + podA + `,"there/b":` + podB + `},"Secret.v1":{}}` + end,
		},
		"v2, in a namespace": {
			requestOf(naming{true, "here"}, namespaced),
			inNamespace + `{"Deployment.apps/v1":{"here/c":` + deployment + `},"Namespace.v1":{"d":` + namespace + `},"Pod.v1":{"here/a":` + podA + `,"there/b":` + podB + `},"Secret.v1":{}}` + end,
		},
	} {
		if diff := cmp.Diff(test.want, test.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}

	decorated, err := json.Marshal(&decoratorRequest{controller, clustered.Object, groups{"Pod.v1": {}}, groups{}, true})
	if want := `{"controller":{"kind":"CompositeController"},"object":{"apiVersion":"example.com/v1","kind":"Set","metadata":{"name":"one"}},"attachments":{"Pod.v1":{}},"related":{},"finalizing":true}`; string(decorated) != want || err != nil {
		t.Errorf("got  %s, %v\nwant %s", decorated, err, want)
	}
	customized, err := json.Marshal(&customizeRequest{controller, clustered.Object})
	if want := `{"controller":{"kind":"CompositeController"},"parent":{"apiVersion":"example.com/v1","kind":"Set","metadata":{"name":"one"}}}`; string(customized) != want || err != nil {
		t.Errorf("got  %s, %v\nwant %s", customized, err, want)
	}
}

func TestAnswers(t *testing.T) {
	a, err := parseAnswer([]byte(`{"status": {"n": 9007199254740993}, "children": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}], "resyncAfterSeconds": 1.5, "finalized": true, "other": 1}`), true, false)
	if err != nil || a.Status["n"] != int64(9007199254740993) || len(a.Children) != 1 || a.Children[0].GetName() != "a" || a.ResyncAfterSeconds != 1.5 || !a.Finalized {
		t.Errorf("got %+v, %v", a, err)
	}
	a, err = parseAnswer([]byte(`{"labels": {"a": "b", "c": null}, "annotations": {"d": "e"}, "attachments": []}`), false, true)
	if err != nil || a.Status != nil || *a.Labels["a"] != "b" || a.Labels["c"] != nil || len(a.Labels) != 2 || *a.Annotations["d"] != "e" {
		t.Errorf("got %+v, %v", a, err)
	}
	for text, want := range map[string]string{
		"":                     "the answer is empty",
		"[]":                   "the answer cannot be used",
		`{"children": [null]}`: "the child 1 of the answer needs an apiVersion",
		`{"children": [{"apiVersion":"v1","kind":"Pod"}]}`: "needs an apiVersion, a kind, and a metadata.name",
		`{"status": 1}`:                "the answer cannot be used",
		`{"attachments": []}`:          `unknown field "attachments"`,
		`{"status": {}, "status": {}}`: `duplicate field "status"`,
	} {
		if _, err := parseAnswer([]byte(text), true, true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
