package converge

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/convergence"
)

func TestDecisions(t *testing.T) {
	owner := Owner{Operator: "op", Handler: "children", Parent: Parent{UID: "parent"}}
	c := newClaim(Call{Owner: owner, Options: &convergence.Options{}}, []string{"former"})
	former := Owner{Operator: "former", Handler: "children", Parent: owner.Parent}
	ch := &child{Key: Key{Name: "one"}, content: map[string]any{"data": map[string]any{"a": "b"}}}
	live := func(changes ...func(*fact)) *fact {
		f := &fact{Key: ch.Key, uid: "1", version: "7", owner: owner.Hash(), digest: [hashSize]byte{1}}
		f.marks.Wanted = c.mark(ch, f.owner, false, nil).hash
		own(f, `{"f:data":{"f:a":{}},"f:metadata":{"f:labels":{},"f:annotations":{},"f:ownerReferences":{}}}`)
		for _, change := range changes {
			change(f)
		}
		return f
	}
	isDeleting := func(f *fact) { f.deleting = true }
	isStrangers := func(f *fact) { f.owner = "other" }
	isUnowned := func(f *fact) { f.owner = "" }
	isControlled := func(f *fact) { f.controller = "other" }
	isFormer := func(f *fact) { f.former = true }
	isChanged := func(f *fact) { f.digest[0] = 2 }
	isIncomplete := func(f *fact) { own(f, `{"f:data":{"f:x":{}}}`) }
	for name, test := range map[string]struct {
		live, known *fact
		isRead      bool
		want        action
		refusal     string
	}{
		"missing":                                 {want: create},
		"missing, although it was known":          {known: live(), want: create},
		"as it was judged":                        {live: live(), known: live(), want: leave},
		"not judged yet, and all fields are ours": {live: live(), want: leave},
		"not judged yet, and a field is not ours": {live: live(func(f *fact) { own(f, `{"f:data":{},"f:metadata":{}}`) }), want: leave}, // all of data is
		"not judged yet, and no field is ours":    {live: live(isIncomplete), want: restore},
		"not judged yet, and nothing was applied": {live: live(func(f *fact) { *f = fact{uid: "1", owner: f.owner, marks: f.marks} }), want: restore},
		"not judged yet, and the field has no owner": {live: live(func(f *fact) {
			f.details.Store(&details{fields: []byte(`{"f:metadata":{}}`), unowned: []string{"data"}})
		}), want: leave},
		"something else is wanted":             {live: live(func(f *fact) { f.marks.Wanted = "other" }), known: live(), want: change},
		"nothing but the label":                {live: live(func(f *fact) { *f = fact{uid: "1", owner: f.owner} }), want: change},
		"the annotation is gone":               {live: live(func(f *fact) { f.marks.Wanted = "" }), known: live(), want: restore},
		"other fields are ours than before":    {live: live(isChanged), known: live(), want: restore},
		"another object of the name":           {live: live(func(f *fact) { f.uid = types.UID("2") }), known: live(), want: restore},
		"being deleted":                        {live: live(isDeleting), known: live(), want: wait},
		"being deleted, as it was read":        {live: live(isDeleting), isRead: true, want: wait},
		"of another owner, being deleted":      {live: live(isStrangers, isDeleting), want: wait},
		"of another owner":                     {live: live(isStrangers), want: examine},
		"of another controller":                {live: live(isControlled), known: live(), want: examine},
		"of no owner":                          {live: live(isUnowned), known: live(), want: examine},
		"of a former name":                     {live: live(func(f *fact) { f.owner = former.Hash(); f.marks.Wanted = c.mark(ch, f.owner, false, nil).hash }), want: leave},
		"applied under a former name":          {live: live(isFormer), want: examine},
		"a stranger that was read":             {live: live(isStrangers), isRead: true, want: refuse, refusal: "another parent"},
		"a stranger that is being deleted":     {live: live(isStrangers, isDeleting), isRead: true, want: refuse, refusal: "is being deleted"},
		"another controller, as it was read":   {live: live(isControlled, isFormer), isRead: true, want: refuse, refusal: "another controller"},
		"a lost label":                         {live: live(isUnowned, func(f *fact) { f.controller = "parent" }), isRead: true, want: adopt},
		"a lost label under a former name":     {live: live(isUnowned, isFormer, func(f *fact) { f.controller = "parent" }), isRead: true, want: takeOver},
		"a former name, as it was read":        {live: live(isFormer), isRead: true, want: takeOver},
		"as it was read":                       {live: live(), isRead: true, want: leave},
		"as it was read, with another digest":  {live: live(isChanged), known: live(), isRead: true, want: leave},
		"as it was read, without a field":      {live: live(isIncomplete), known: live(isIncomplete), isRead: true, want: restore},
		"as it was read, and wanted otherwise": {live: live(func(f *fact) { f.marks.Wanted = "other" }), isRead: true, want: change},
	} {
		t.Run(name, func(t *testing.T) {
			v := view{live: test.live, known: test.known}
			if test.isRead {
				v.object = &unstructured.Unstructured{Object: map[string]any{}}
			}
			got := c.decide(ch, v)
			if got.action != test.want {
				t.Errorf("got %d, want %d", got.action, test.want)
			}
			if (got.refusal == nil) != (test.refusal == "") || got.refusal != nil && !strings.Contains(got.refusal.Error(), test.refusal) {
				t.Errorf("got %v, want %s", got.refusal, test.refusal)
			}
		})
	}
	var temporary *handler.TemporaryError
	if d := c.decide(ch, view{live: live(isStrangers, isDeleting), object: &unstructured.Unstructured{}}); !errors.As(d.refusal, &temporary) {
		t.Errorf("%v is not temporary", d.refusal)
	}
}

// own makes fields of a child the operator's.
func own(f *fact, fields string) { f.details.Store(&details{fields: []byte(fields)}) }

// An object without the label of the owner is taken over only if it is known to be the owner's, or if the handler
// says so.
func TestObjectsThatAnOwnerMayTakeOver(t *testing.T) {
	parent := Parent{UID: "parent", GVK: schema.GroupVersionKind{Group: "kopf.dev", Version: "v1", Kind: "Shop"}}
	parent.Key.Namespace, parent.Key.Name = "ns", "shop"
	owner := Owner{Operator: "op", Handler: "children", Parent: parent}
	ch := &child{Key: Key{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "ns", Name: "one"}, resource: configMaps}
	byHandler := func(handler string) *fact {
		return &fact{Key: ch.Key, owner: "another label", marks: marks{Handler: handler, Parent: parent.String()}}
	}
	applied := func(f *fact) *fact {
		f.digest = [hashSize]byte{1}
		return f
	}
	for name, test := range map[string]struct {
		live    *fact
		adopts  bool
		refusal string // empty if it may be taken over
	}{
		"no owner":                                   {&fact{Key: ch.Key}, false, "no owner; declare the handler with kopf.AdoptExisting() to take it over, rename the child, or delete the object: kubectl delete configmaps one -n ns"},
		"no owner, and the handler adopts":           {&fact{Key: ch.Key}, true, ""},
		"the reference to the parent":                {&fact{Key: ch.Key, controller: "parent"}, false, ""},
		"another controller":                         {&fact{Key: ch.Key, controller: "other"}, true, "another controller"},
		"the owner's annotation":                     {applied(bound(byHandler("children"), bindingOf(owner.Hash(), ch.Key))), false, ""},
		"the annotation of another child":            {applied(bound(byHandler("children"), bindingOf(owner.Hash(), Key{Name: "two"}))), false, "a former parent of this name"},
		"the annotation without applied fields":      {bound(byHandler("children"), bindingOf(owner.Hash(), ch.Key)), false, "the same handler of an operator with another name"},
		"another handler of the parent":              {byHandler("declared"), true, `the handler "declared" of the same parent`},
		"a handler that is not declared":             {byHandler("former"), false, `the handler "former", which is not declared anymore; declare the handler with kopf.ID("former")`},
		"a handler that is not declared, is adopted": {byHandler("former"), true, ""},
		"an applied child of such a handler":         {applied(byHandler("former")), false, `the handler "former", which is not declared anymore`},
		"an applied child of another parent":         {applied(&fact{Key: ch.Key, owner: "x", marks: marks{Handler: "children", Parent: "Shop.kopf.dev ns/other"}}), true, "Shop.kopf.dev ns/other; rename the child"},
		"no owner, without a namespace":              {&fact{Key: Key{Name: "one"}}, false, "no owner; declare the handler with kopf.AdoptExisting() to take it over, rename the child, or delete the object: kubectl delete configmaps one"},
		"another parent":                             {&fact{Key: ch.Key, owner: "x", marks: marks{Handler: "children", Parent: "Shop.kopf.dev ns/other"}}, true, "Shop.kopf.dev ns/other; rename the child: an object has one parent"},
		"another parent, which is not named":         {&fact{Key: ch.Key, owner: "x"}, true, "another parent; rename the child"},
		"another parent of the same name":            {&fact{Key: ch.Key, owner: "x", controller: "other", marks: marks{Handler: "children", Parent: parent.String()}}, true, "another controller"},
	} {
		t.Run(name, func(t *testing.T) {
			call := Call{Owner: owner, Options: &convergence.Options{AdoptExisting: test.adopts}, IsDeclared: func(id string) bool { return id == "declared" }}
			d := newClaim(call, nil).decide(ch, view{live: test.live, object: &unstructured.Unstructured{Object: map[string]any{}}})
			if test.refusal == "" {
				if d.action != adopt || d.refusal != nil {
					t.Errorf("got %d, %v", d.action, d.refusal)
				}
				return
			}
			var refused *convergence.NotOursError
			if d.action != refuse || !errors.As(d.refusal, &refused) {
				t.Fatalf("got %d, %v", d.action, d.refusal)
			}
			text := refused.Owner + "; " + refused.Remedy
			if !strings.HasPrefix(text, test.refusal) || test.live.Namespace == "" && strings.HasSuffix(text, " -n ") {
				t.Errorf("got %s", text)
			}
		})
	}
}

// Without a garbage collector, as on the API server of envtest, a child stays when its parent is deleted.
func TestAChildOfADeletedParentOfTheNameIsLeftToTheGarbageCollector(t *testing.T) {
	parent := Parent{UID: "new", GVK: schema.GroupVersionKind{Group: "kopf.dev", Version: "v1", Kind: "Shop"}}
	parent.Key.Namespace, parent.Key.Name = "ns", "shop"
	for name, test := range map[string]struct {
		reference metav1.OwnerReference
		namespace string
		want      string
	}{
		"the name of the parent": {metav1.OwnerReference{APIVersion: "kopf.dev/v1beta1", Kind: "Shop", Name: "shop"}, "ns", "the object belongs to a former parent of this name, Shop.kopf.dev shop (uid old); it was not changed for Shop.kopf.dev ns/shop (uid new): the garbage collector of Kubernetes deletes it; in a cluster without one, such as that of envtest, delete it yourself: kubectl delete configmaps one -n ns"},
		"another name":           {metav1.OwnerReference{APIVersion: "kopf.dev/v1", Kind: "Shop", Name: "other"}, "ns", "the object belongs to another controller, Shop.kopf.dev other"},
		"another kind":           {metav1.OwnerReference{APIVersion: "kopf.dev/v1", Kind: "Web", Name: "shop"}, "ns", "the object belongs to another controller, Web.kopf.dev shop"},
		"another group":          {metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Shop", Name: "shop"}, "ns", "the object belongs to another controller, Shop.apps shop"},
		"another namespace":      {metav1.OwnerReference{APIVersion: "kopf.dev/v1", Kind: "Shop", Name: "shop"}, "elsewhere", "the object belongs to another controller, Shop.kopf.dev shop"},
	} {
		t.Run(name, func(t *testing.T) {
			test.reference.UID = "old"
			test.reference.Controller = new(true)
			live := &unstructured.Unstructured{Object: map[string]any{}}
			live.SetOwnerReferences([]metav1.OwnerReference{test.reference})
			ch := &child{Key: Key{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: test.namespace, Name: "one"}, resource: configMaps}
			call := Call{Owner: Owner{Operator: "op", Handler: "children", Parent: parent}, Options: &convergence.Options{}}
			d := newClaim(call, nil).decide(ch, view{live: &fact{Key: ch.Key, controller: "old"}, object: live})
			if d.action != refuse || !strings.HasPrefix(d.refusal.Error(), test.want) {
				t.Errorf("got %d, %v", d.action, d.refusal)
			}
		})
	}
}

// bound gives a fact the binding of an annotation.
func bound(f *fact, binding string) *fact {
	f.details.Store(&details{binding: binding})
	return f
}
