package converge

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/model/convergence"
)

// renamedOperator returns an operator that had other names before.
func renamedOperator(c *cluster, name string, formers ...string) *operator {
	o := newOperator(c)
	o.Manager, o.FormerManagers, o.owner.Operator = name, formers, name
	c.manager = name
	return o
}

func (o *operator) showAll() {
	for _, u := range o.objects {
		o.observe(o.factOf(u), false)
	}
}

func TestChildOfAFormerNameIsTakenOver(t *testing.T) {
	server := &cluster{objects: map[string]*unstructured.Unstructured{}}
	o := renamedOperator(server, "a")
	expect(t, o, "apply one")
	label := server.objects["one"].GetLabels()[convergence.OwnerLabel]

	o = renamedOperator(server, "b", "a")
	o.showAll()
	expect(t, o, "get one", "rename one")
	expect(t, o)
	o.showAll()
	expect(t, o)
	child := server.objects["one"]
	if entries := child.GetManagedFields(); len(entries) != 1 || entries[0].Manager != "b" || child.GetLabels()[convergence.OwnerLabel] != label {
		t.Errorf("got %v", child)
	}

	o = renamedOperator(server, "c", "b", "a") // renamed again
	o.showAll()
	expect(t, o, "get one", "rename one")
	o = renamedOperator(server, "c", "b", "a") // restarted
	o.showAll()
	expect(t, o)
	if children := o.childrenOf(o.begin(o.owner, &o.options, false)); len(children) != 1 {
		t.Errorf("got the children %v", children)
	}
}

func TestChildOfAnotherNameIsRefused(t *testing.T) {
	server := &cluster{objects: map[string]*unstructured.Unstructured{}}
	expect(t, renamedOperator(server, "a"), "apply one")
	o := renamedOperator(server, "b")
	o.showAll()
	_, err := o.step(t)
	var refused *convergence.NotOursError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "settings.FormerNames") {
		t.Errorf("got %v", err)
	}
}

func TestVersionOfAChildThatHasChangedIsReadAgain(t *testing.T) {
	server := &cluster{objects: map[string]*unstructured.Unstructured{}}
	expect(t, renamedOperator(server, "a"), "apply one")
	o := renamedOperator(server, "b", "a")
	o.showAll()
	server.beforeRename = func() {
		server.beforeRename = nil
		server.version++
		server.objects["one"].SetResourceVersion("1000")
	}
	expect(t, o, "get one", "rename one", "apply one", "get one", "get one", "rename one")
}

func TestOnlyWhatWasAppliedMoves(t *testing.T) {
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const apply, update = metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	u.SetResourceVersion("7")
	u.SetAnnotations(map[string]string{convergence.MarksAnnotation: `{"wanted":"x","handler":"h","parent":"p","binding":"c","accepted":{"data.v":"y"}}`})
	u.SetManagedFields([]metav1.ManagedFieldsEntry{
		entry("a", apply, `{"f:data":{"f:x":{}}}`), entry("b", apply, `{"f:data":{"f:y":{}}}`),
		entry("a", update, `{"f:data":{"f:z":{}}}`), entry("other", apply, `{"f:data":{"f:w":{}}}`),
	})
	patch, err := renamed(u.DeepCopy(), []string{"a"}, "b")
	if err != nil {
		t.Fatal(err)
	}
	var operations []struct {
		Path  string
		Value json.RawMessage
	}
	var got []metav1.ManagedFieldsEntry
	if err := errors.Join(json.Unmarshal(patch, &operations), json.Unmarshal(operations[0].Value, &got)); err != nil {
		t.Fatal(err)
	}
	want := []metav1.ManagedFieldsEntry{
		entry("b", apply, `{"f:data":{"f:x":{},"f:y":{}}}`), entry("a", update, `{"f:data":{"f:z":{}}}`), entry("other", apply, `{"f:data":{"f:w":{}}}`),
	}
	if !reflect.DeepEqual(got, want) || string(operations[1].Value) != `"7"` {
		t.Errorf("got %s", patch)
	}
	if last := operations[len(operations)-1]; !strings.Contains(string(last.Value), `{\"wanted\":\"unknown\",\"handler\":\"h\",\"parent\":\"p\",\"binding\":\"c\",\"accepted\":{\"data.v\":\"y\"}}`) || last.Path != "/metadata/annotations/kopf.zalando.org~1kopf-ensured" {
		t.Errorf("got %s", patch)
	}
	if patch, err := renamed(u, []string{"former"}, "b"); patch != nil || err != nil {
		t.Errorf("got %s, %v", patch, err)
	}
}
