package converge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

func expect(t *testing.T, o *operator, want ...string) {
	t.Helper()
	got, err := o.step(t)
	if err != nil || !reflect.DeepEqual(got, append([]string(nil), want...)) {
		t.Errorf("got %v and %v, want %v", got, err, want)
	}
}

func TestChildIsCreatedOnceWithoutAWatch(t *testing.T) {
	o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
	expect(t, o, "apply one")
	expect(t, o) // the watch shows nothing yet, but the answer counts
	o.show(o.objects["one"])
	expect(t, o)
}

func TestStaleWatchDoesNotCount(t *testing.T) {
	o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
	expect(t, o, "apply one")
	stale := o.objects["one"].DeepCopy()
	stale.SetResourceVersion("50")
	stale.SetManagedFields(nil)
	o.show(stale)
	expect(t, o)
}

func TestSuccessorJudgesByTheWatch(t *testing.T) {
	c := &cluster{objects: map[string]*unstructured.Unstructured{}}
	expect(t, newOperator(c), "apply one")
	next := newOperator(c)
	next.show(c.objects["one"])
	expect(t, next)
	blind := newOperator(c) // whose watch has not shown the child
	expect(t, blind, "apply one", "get one")
	expect(t, blind)
}

func TestReplacedChildIsNotChanged(t *testing.T) {
	o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
	expect(t, o, "apply one")
	former := o.objects["one"].DeepCopy()
	delete(o.objects, "one")
	stranger := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "one", "namespace": "ns"}}}
	o.save(stranger, "another")
	former.SetManagedFields(nil) // the watch shows only that another client has changed it
	former.SetResourceVersion("150")
	o.show(former)
	got, err := o.step(t)
	if !reflect.DeepEqual(got, []string{"apply one", "get one"}) {
		t.Errorf("got %v", got)
	}
	var refused *convergence.NotOursError
	if !errors.As(err, &refused) {
		t.Errorf("got %v", err)
	}
}

func TestDeletedChildIsCreatedAgain(t *testing.T) {
	o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
	called := 0
	defer o.Follow(o.owner.Parent.UID, o.owner.Handler, func() { called++ })()
	expect(t, o, "apply one")
	o.show(o.objects["one"])
	gone := o.objects["one"]
	delete(o.objects, "one")
	o.store.observe(readFact(gone, "kopf-test"), true)
	if called != 1 {
		t.Errorf("the handler was called %d times", called)
	}
	expect(t, o, "apply one")
}

// A child that was created and deleted while its watch was interrupted appears in no event.
func TestListShowsThatAChildIsGone(t *testing.T) {
	o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
	called := 0
	defer o.Follow(o.owner.Parent.UID, o.owner.Handler, func() { called++ })()
	expect(t, o, "apply one")
	delete(o.objects, "one")
	all := func(Key) bool { return true }
	o.store.replace(all, nil, "90", false) // older than the child
	if called != 0 {
		t.Error("a list that is older than the child counts")
	}
	o.store.replace(all, nil, "900", false)
	if called != 1 {
		t.Errorf("the handler was called %d times", called)
	}
	expect(t, o, "apply one")
	o.show(o.objects["one"])
	o.store.replace(all, []*fact{readFact(o.objects["one"], "kopf-test")}, "900", false)
	if called != 1 {
		t.Errorf("the handler was called %d times for the same list", called)
	}
}

// The versions of a backup cannot be compared with those that are known.
func TestListOfAnotherHistoryIsJudgedAnew(t *testing.T) {
	o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
	called := 0
	defer o.Follow(o.owner.Parent.UID, o.owner.Handler, func() { called++ })()
	expect(t, o, "apply one")
	o.show(o.objects["one"])
	all := func(Key) bool { return true }
	earlier := o.objects["one"].DeepCopy()
	earlier.SetResourceVersion("7")
	o.objects["one"] = earlier
	o.store.replace(all, []*fact{readFact(earlier, "kopf-test")}, "8", true)
	if called != 1 {
		t.Errorf("the handler was called %d times", called)
	}
	expect(t, o) // the child is as wanted
	o.store.replace(all, nil, "5", true)
	if called != 2 {
		t.Errorf("the handler was called %d times", called)
	}
	delete(o.objects, "one")
	expect(t, o, "apply one")
}

func TestForgottenParentNeedsNoMemory(t *testing.T) {
	o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
	expect(t, o, "apply one")
	o.Forget(o.owner.Parent.UID)
	if len(o.store.states) != 0 || len(o.store.owners) != 0 {
		t.Error("the state of the parent is left")
	}
}

// Only a child that has drifted is read, and only if a handler decides about it.
func TestDecisionsAboutDriftCostOneRequest(t *testing.T) {
	for name, test := range map[string]struct {
		drift func(context.Context, selector.Resource, convergence.Drift) (convergence.Resolution, error)
		want  []string
	}{
		"nothing decides": {nil, []string{"apply one"}},
		"it is restored": {func(context.Context, selector.Resource, convergence.Drift) (convergence.Resolution, error) {
			return convergence.Restore(), nil
		}, []string{"get one", "apply one"}},
		"it is accepted": {func(context.Context, selector.Resource, convergence.Drift) (convergence.Resolution, error) {
			return convergence.Accept(), nil
		}, []string{"get one", "apply one"}},
		"it is not decided": {func(context.Context, selector.Resource, convergence.Drift) (convergence.Resolution, error) {
			return convergence.Resolution{}, errors.New("no")
		}, []string{"get one"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
			o.drift = test.drift
			expect(t, o, "apply one")
			changed := o.objects["one"].DeepCopy()
			changed.SetManagedFields([]metav1.ManagedFieldsEntry{
				{Manager: "kopf-test", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{},"f:annotations":{},"f:ownerReferences":{}}}`)},
				{Manager: "another", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:a":{}}}`)},
			})
			changed.SetResourceVersion("150")
			o.objects["one"] = changed
			o.show(changed)
			if got, _ := o.step(t); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// touch changes an object as its status does: the operator need not know.
func (c *cluster) touch() {
	const name = "one"
	c.version++
	changed := c.objects[name].DeepCopy()
	changed.SetResourceVersion(fmt.Sprint(c.version + 100))
	c.objects[name] = changed
}

// A controller writes the status of a child at any moment, also before its deletion.
func TestRecreatedChildMayHaveChangedMeanwhile(t *testing.T) {
	o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
	o.options.Recreate = []schema.GroupKind{{Kind: "ConfigMap"}}
	expect(t, o, "apply one")
	o.refuse = func(current, u *unstructured.Unstructured) error {
		if current == nil {
			return nil
		}
		return apierrors.NewInvalid(u.GroupVersionKind().GroupKind(), u.GetName(), field.ErrorList{field.Invalid(field.NewPath("data"), nil, "field is immutable")})
	}
	changes := 1
	o.beforeDelete = func() {
		if changes--; changes >= 0 {
			o.touch()
		}
	}
	o.value = "c"
	expect(t, o, "apply one", "get one", "delete one", "get one", "apply one", "get one", "delete one")
	if o.objects["one"] != nil {
		t.Error("the child was not deleted")
	}
}

// What others change is restored in the same way as what is wanted otherwise.
func TestChildIsRecreatedIfItCannotBeRestored(t *testing.T) {
	o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
	o.options.Recreate = []schema.GroupKind{{Kind: "ConfigMap"}}
	expect(t, o, "apply one")
	changed := o.objects["one"].DeepCopy()
	changed.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: "kopf-test", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{},"f:annotations":{},"f:ownerReferences":{}}}`),
	}})
	o.objects["one"] = changed
	o.touch()
	o.show(o.objects["one"])
	o.refuse = func(current, u *unstructured.Unstructured) error {
		if current == nil {
			return nil
		}
		return apierrors.NewInvalid(u.GroupVersionKind().GroupKind(), u.GetName(), field.ErrorList{field.Invalid(field.NewPath("data"), nil, "field is immutable")})
	}
	expect(t, o, "apply one", "get one", "delete one")
}

func TestChildrenAreKnownWithoutTheirLabel(t *testing.T) {
	for name, test := range map[string]struct {
		change func(labels map[string]string)
		seen   bool // by the watch, which selects by the label
		want   []string
	}{
		"it was removed, while no operator was running": {func(labels map[string]string) { delete(labels, convergence.OwnerLabel) }, false, []string{"apply one", "get one", "apply one"}},
		"it was changed": {func(labels map[string]string) { labels[convergence.OwnerLabel] = "another" }, true, []string{"get one", "apply one"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cluster{objects: map[string]*unstructured.Unstructured{}}
			far := func() *operator { // the child has no owner reference
				o := newOperator(c)
				o.owner.Parent.Key.Namespace = "elsewhere"
				return o
			}
			expect(t, far(), "apply one")
			changed := c.objects["one"].DeepCopy()
			labels := changed.GetLabels()
			test.change(labels)
			changed.SetLabels(labels)
			c.objects["one"] = changed
			c.touch()
			next := far()
			if test.seen {
				next.show(c.objects["one"])
			}
			expect(t, next, test.want...)
			if got := c.objects["one"].GetLabels()[convergence.OwnerLabel]; got != next.owner.Hash() {
				t.Errorf("got the label %q", got)
			}
		})
	}
}

// A backup tool can copy an object with its label, its annotation, and its field managers.
func TestCopiesOfAChildAreNotDeleted(t *testing.T) {
	o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
	expect(t, o, "apply one")
	child := o.objects["one"]
	o.show(child)
	duplicate := child.DeepCopy()
	duplicate.SetName("two")
	duplicate.SetUID("two")
	o.show(duplicate)
	r := o.call()
	defer r.memory.end(nil)
	if got := r.unwanted(nil); len(got) != 1 || got[0].Name != "one" {
		t.Errorf("got %d children to delete", len(got))
	}
}

func TestFightsAreReportedOnce(t *testing.T) {
	for name, test := range map[string]struct {
		disturb func(o *operator)
		want    string
	}{
		"another client deletes the child": {func(o *operator) {
			gone := o.objects["one"]
			delete(o.objects, "one")
			o.store.observe(readFact(gone, "kopf-test"), true)
		}, "the child ConfigMap ns/one: it was deleted"},
		"another client removes the label": {func(o *operator) {
			o.strip()
			o.store.observe(readFact(o.objects["one"], "kopf-test"), true)
		}, "the child ConfigMap ns/one: metadata.labels[kopf.zalando.org/ensured-by] (removed)"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
				o.store.rule = contentionRule([]time.Duration{time.Minute})
				var reports []string
				o.log = funcr.New(func(_, line string) { reports = append(reports, line) }, funcr.Options{})
				called := 0
				defer o.Follow(o.owner.Parent.UID, o.owner.Handler, func() { called++ })()
				for range patience + 3 {
					if _, err := o.step(t); err != nil {
						t.Fatal(err)
					}
					o.show(o.objects["one"])
					test.disturb(o)
				}
				if called != patience+1 {
					t.Errorf("the handler was called %d times at once", called)
				}
				reports = slices.DeleteFunc(reports, func(line string) bool { return !strings.Contains(line, "keeps changing") })
				if len(reports) != 1 || !strings.Contains(reports[0], test.want) {
					t.Errorf("got %q", reports)
				}
			})
		})
	}
}

// strip removes the label of the child, as another client does.
func (o *operator) strip() {
	changed := o.objects["one"].DeepCopy()
	changed.SetLabels(nil)
	changed.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: "kopf-test", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:data":{},"f:metadata":{"f:annotations":{},"f:ownerReferences":{}}}`),
	}})
	o.objects["one"] = changed
	o.touch()
}

// The log says what others have done, as far as it is known without a request.
func TestLinesAboutWhatOthersHaveDone(t *testing.T) {
	many := map[string]any{}
	for i := range mostNamed + 2 {
		many[fmt.Sprint("k", i)] = "v"
	}
	for name, test := range map[string]struct {
		disturb func(o *operator)
		want    string
	}{
		"a field is changed": {func(o *operator) {
			u := o.objects["one"]
			u.SetManagedFields([]metav1.ManagedFieldsEntry{
				{Manager: "kopf-test", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{},"f:annotations":{},"f:ownerReferences":{}}}`)},
				{Manager: "other", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:a":{}}}`)},
			})
			u.SetResourceVersion("400")
			o.show(u)
		}, `"The child was changed by another client, and is restored." "child"="ConfigMap ns/one" "fields"=["data.a"]`},
		"it is deleted": {func(o *operator) {
			gone := o.objects["one"]
			delete(o.objects, "one")
			o.store.observe(readFact(gone, "kopf-test"), true)
		}, `"The child was deleted by another client, and is created again." "child"="ConfigMap ns/one"`},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
			var lines []string
			o.log = funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
			if _, err := o.step(t); err != nil {
				t.Fatal(err)
			}
			o.show(o.objects["one"])
			test.disturb(o)
			if _, err := o.step(t); err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, test.want) }) {
				t.Errorf("got the lines %q", lines)
			}
		})
	}
	d := &fact{}
	d.details.Store(&details{fields: []byte(`{}`)})
	if names := nameLost(d, map[string]any{"data": many}); len(names) != mostNamed+1 || names[mostNamed] != "and others" {
		t.Errorf("got %q", names)
	}
	if names := nameLost(&fact{}, map[string]any{"data": many}); names != nil {
		t.Errorf("got %q of a child that was judged before", names)
	}
}

// renamedOperator returns an operator that had other names before.
func renamedOperator(c *cluster, name string, formers ...string) *operator {
	o := newOperator(c)
	o.config.Manager, o.config.FormerManagers, o.owner.Operator = name, formers, name
	c.manager = name
	return o
}

func (o *operator) showAll() {
	for _, u := range o.objects {
		o.store.observe(readFact(u, o.config.Manager, o.config.FormerManagers...), false)
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
	if children := o.call().memory.children(); len(children) != 1 {
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
	expect(t, o, "get one", "rename one", "get one", "rename one")
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

// A child that others change at each attempt is an error, and not an endless loop.
func TestUnrestEndsTheAttempts(t *testing.T) {
	o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
	expect(t, o, "apply one")
	o.value = "c"
	o.refuse = func(*unstructured.Unstructured, *unstructured.Unstructured) error {
		return apierrors.NewConflict(schema.GroupResource{}, "one", nil)
	}
	requests, err := o.step(t)
	if !errors.Is(err, errContended) || len(requests) != 2*maxTries {
		t.Errorf("got %v after %q", err, requests)
	}
}

// An operator with a former name that is still running takes fields back, again and again. The child is applied each
// time, because the operator now owns what it does not want. That is reported once.
func TestFormerOperatorKeepsApplying(t *testing.T) {
	server := &cluster{objects: map[string]*unstructured.Unstructured{}}
	o := renamedOperator(server, "b", "a")
	var lines []string
	o.log = funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	expect(t, o, "apply one")
	o.showAll()
	for range patience + 2 {
		changed := server.objects["one"].DeepCopy()
		changed.SetManagedFields([]metav1.ManagedFieldsEntry{
			{Manager: "a", Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`)},
			{Manager: "b", Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{},"f:annotations":{},"f:ownerReferences":{}}}`)},
		})
		server.objects["one"] = changed
		server.touch()
		o.showAll()
		expect(t, o, "get one", "rename one", "apply one")
		o.showAll()
	}
	reports := slices.DeleteFunc(lines, func(line string) bool {
		return !strings.Contains(line, "An operator with a former name of this one keeps applying a child")
	})
	if len(reports) != 1 {
		t.Errorf("got %q", reports)
	}
}

func TestFailureToTakeOverEndsTheAttempt(t *testing.T) {
	lost := errors.New("connection lost")
	for name, test := range map[string]struct {
		failing  int
		failure  error
		requests []string
		err      error
	}{
		"it cannot be read":    {1, lost, []string{"get one"}, lost},
		"it cannot be written": {2, lost, []string{"get one", "rename one"}, lost},
		"it is gone":           {2, apierrors.NewNotFound(schema.GroupResource{}, "one"), []string{"get one", "rename one", "get one", "rename one"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			server := &cluster{objects: map[string]*unstructured.Unstructured{}}
			expect(t, renamedOperator(server, "a"), "apply one")
			o := renamedOperator(server, "b", "a")
			o.showAll()
			o.failing, o.failure = test.failing, test.failure
			requests, err := o.step(t)
			if !slices.Equal(requests, test.requests) || !errors.Is(err, test.err) {
				t.Errorf("got %v after %q", err, requests)
			}
		})
	}
}
