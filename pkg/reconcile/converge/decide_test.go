package converge

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/handler"
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
