package converge

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/watch"
)

// cluster is a fake API server with config maps.
type cluster struct {
	objects  map[string]*unstructured.Unstructured
	version  int
	requests []string
	manager  string // that applies; "kopf-test" by default
	// beforeRename is called before the field managers are replaced, and beforeDelete before an
	// object is deleted.
	beforeRename, beforeDelete func()
	// refuse returns why a change is refused, or nil.
	refuse func(current, u *unstructured.Unstructured) error
	// try returns why a JSON patch would be refused, or nil.
	try func(patch []byte) error
	// failure is the answer to the request with the number failing, which starts with 1.
	failing int
	failure error
}

// receive records a request, and returns the failure that is its answer.
func (c *cluster) receive(request string) error {
	c.requests = append(c.requests, request)
	if len(c.requests) == c.failing {
		return c.failure
	}
	return nil
}

var (
	_          API = (*cluster)(nil)
	configMaps     = selector.Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true, Preferred: true}
)

// servesConfigMaps returns the kinds of a cluster that has only config maps.
func servesConfigMaps() *watch.Kinds {
	return &watch.Kinds{Source: discovery.SourceFunc(func(context.Context) (discovery.Snapshot, error) {
		return discovery.Snapshot{Resources: []selector.Resource{configMaps}}, nil
	})}
}

func (c *cluster) Get(_ context.Context, r selector.Resource, _, name string) (*unstructured.Unstructured, error) {
	if err := c.receive("get " + name); err != nil {
		return nil, err
	}
	if found := c.objects[name]; found != nil {
		return found.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(r.GVR().GroupResource(), name)
}

// Apply has the answers that test/integration/fidelity compares with the real server.
func (c *cluster) Apply(_ context.Context, r selector.Resource, content map[string]any) (*unstructured.Unstructured, error) {
	u := (&unstructured.Unstructured{Object: content}).DeepCopy()
	if err := c.receive("apply " + u.GetName()); err != nil {
		return nil, err
	}
	current, conflict := c.objects[u.GetName()], apierrors.NewConflict(r.GVR().GroupResource(), u.GetName(), nil)
	switch {
	case current == nil && u.GetUID() != "", current != nil && u.GetResourceVersion() != "" && u.GetResourceVersion() != current.GetResourceVersion():
		return nil, conflict
	case current != nil && u.GetUID() != "" && u.GetUID() != current.GetUID():
		return nil, apierrors.NewInvalid(r.GVK().GroupKind(), u.GetName(), field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), u.GetUID(), "field is immutable")})
	}
	if c.refuse != nil {
		if err := c.refuse(current, u); err != nil {
			return nil, err
		}
	}
	return c.save(u, cmp.Or(c.manager, "kopf-test")), nil
}

// save stores an object of a manager.
func (c *cluster) save(u *unstructured.Unstructured, manager string) *unstructured.Unstructured {
	c.version++
	if current := c.objects[u.GetName()]; current != nil {
		u.SetUID(current.GetUID())
	} else {
		_ = unstructured.SetNestedField(u.Object, fmt.Sprint("uid-", c.version), "metadata", "uid")
	}
	u.SetResourceVersion(fmt.Sprint(c.version + 100))
	u.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:data":{},"f:metadata":{"f:labels":{},"f:annotations":{},"f:ownerReferences":{}}}`),
	}})
	c.objects[u.GetName()] = u
	return u.DeepCopy()
}

// Rename applies a patch that replaces the field managers, bound to a version, and an annotation.
func (c *cluster) Rename(_ context.Context, r selector.Resource, child Key, patch []byte) (*unstructured.Unstructured, error) {
	if err := c.receive("rename " + child.Name); err != nil {
		return nil, err
	}
	if c.beforeRename != nil {
		c.beforeRename()
	}
	current := c.objects[child.Name]
	var operations []struct {
		Path  string
		Value json.RawMessage
	}
	var entries []metav1.ManagedFieldsEntry
	var version string
	switch {
	case current == nil:
		return nil, apierrors.NewNotFound(r.GVR().GroupResource(), child.Name)
	case json.Unmarshal(patch, &operations) != nil || json.Unmarshal(operations[0].Value, &entries) != nil || json.Unmarshal(operations[1].Value, &version) != nil:
		return nil, apierrors.NewBadRequest(string(patch))
	case version != current.GetResourceVersion():
		return nil, apierrors.NewConflict(r.GVR().GroupResource(), child.Name, nil)
	}
	c.version++
	current = current.DeepCopy()
	current.SetResourceVersion(fmt.Sprint(c.version + 100))
	current.SetManagedFields(entries)
	if last := operations[len(operations)-1]; strings.HasPrefix(last.Path, "/metadata/annotations/") {
		var text string
		if err := json.Unmarshal(last.Value, &text); err != nil {
			return nil, err
		}
		annotations := current.GetAnnotations()
		annotations[strings.ReplaceAll(strings.TrimPrefix(last.Path, "/metadata/annotations/"), "~1", "/")] = text
		current.SetAnnotations(annotations)
	}
	c.objects[child.Name] = current
	return current.DeepCopy(), nil
}

// TryPatch has the answer of the test.
func (c *cluster) TryPatch(_ context.Context, _ selector.Resource, child Key, patch []byte) error {
	if err := c.receive("try " + child.Name); err != nil {
		return err
	}
	return c.try(patch)
}

func (c *cluster) TryCreate(context.Context, selector.Resource, map[string]any) error { return nil }

func (c *cluster) Delete(_ context.Context, r selector.Resource, child *fact) error {
	c.requests = append(c.requests, "delete "+child.Name)
	if c.beforeDelete != nil {
		c.beforeDelete()
	}
	current := c.objects[child.Name]
	switch {
	case current == nil:
		return apierrors.NewNotFound(r.GVR().GroupResource(), child.Name)
	case current.GetUID() != child.uid || current.GetResourceVersion() != child.version:
		return apierrors.NewConflict(r.GVR().GroupResource(), child.Name, nil)
	}
	delete(c.objects, child.Name)
	return nil
}

// operator is one process with a parent.
type operator struct {
	*cluster
	*Converger
	owner   Owner
	options convergence.Options
	value   string // of the field "a" of the config map
	more    string // another field of it, "b"; empty for none
	log     logr.Logger
	drift   func(context.Context, selector.Resource, convergence.Drift) (convergence.Resolution, error)
}

func newOperator(c *cluster) *operator {
	o := &operator{cluster: c, value: "b", log: logr.Discard(), Converger: New(Config{Manager: "kopf-test", Resources: servesConfigMaps()})}
	o.api = c
	o.owner = Owner{Operator: "kopf-test", Handler: "children", Parent: Parent{UID: "parent", GVK: schema.GroupVersionKind{Group: "kopf.dev", Version: "v1", Kind: "Shop"}}}
	o.owner.Parent.Key = object.Key{Resource: "shops.v1.kopf.dev"}
	o.owner.Parent.Key.Namespace, o.owner.Parent.Key.Name = "ns", "shop"
	return o
}

// step applies the config map "one", and returns the requests.
func (o *operator) step(t *testing.T) ([]string, error) {
	t.Helper()
	const name = "one"
	o.requests = nil
	call := Call{Owner: o.owner, Options: &o.options, Log: o.log, IsDeclared: func(string) bool { return true }, Drift: o.drift}
	r := o.begin(call, call.Options)
	defer r.memory.end(nil)
	ch := &child{Key: Key{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "ns", Name: name}, resource: configMaps}
	ch.content = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "ns"}, "data": map[string]any{"a": o.value}}
	if o.more != "" {
		_ = unstructured.SetNestedField(ch.content, o.more, "data", "b")
	}
	_, err := r.apply(t.Context(), ch)
	return slices.Clone(o.requests), err
}

// show lets the watch show an object as it is now.
func (o *operator) show(u *unstructured.Unstructured) {
	o.store.observe(readFact(u, "kopf-test"), false)
}

// call begins a call of the handler, which must be ended.
func (o *operator) call() *run {
	return o.begin(Call{Owner: o.owner, Options: &o.options, Log: logr.Discard()}, &o.options)
}
