package virtual

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// themes returns a config map with the fonts, and another one in another namespace.
func themes(fonts map[string]string) func(context.Context, *kopf.Change) ([]client.Object, error) {
	return func(context.Context, *kopf.Change) ([]client.Object, error) {
		near, far := newTheme(), newTheme()
		near.Data = fonts
		far.Namespace = "elsewhere"
		return []client.Object{near, far}, nil
	}
}

// managersOf returns the managers that have applied the theme, and its data.
func managersOf(h *kopftest.Harness) (managers string, data map[string]string) {
	found := newTheme()
	h.Get(found)
	var names []string
	for _, entry := range found.ManagedFields {
		if entry.Operation == metav1.ManagedFieldsOperationApply {
			names = append(names, entry.Manager)
		}
	}
	return strings.Join(names, " "), found.Data
}

// An operator gets another name while its parents are unchanged: each child is written once. Then
// a field that is dropped goes, and so does a child.
func TestRenamedOperatorKeepsItsChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		name, formers, fonts := "a.example.com", []string(nil), map[string]string{"serif": "x", "mono": "x"}
		declare := func() *kopf.Registry {
			r := kopf.NewRegistry()
			r.Ensure(examples, themes(fonts), kopf.ID("children"), kopf.AllowEmpty())
			r.OnUpdate(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("update"), kopf.Revision("1"))
			return r
		}
		h := kopftest.New(t, declare, kopftest.CRDs(definitions), kopftest.Settings(func(s *kopf.Settings) { s.Name, s.FormerNames = name, formers }))
		h.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}})
		one := newExample()
		h.Create(one)
		h.Advance(time.Minute)

		restart := func(to string, former ...string) (writes []kopftest.Write) {
			h.Stop()
			name, formers = to, former
			before := len(h.Writes())
			h.Start()
			h.Advance(time.Hour)
			return h.Writes()[before:]
		}
		if writes := restart("b.example.com", "a.example.com"); len(writes) != 2 {
			t.Errorf("a renamed operator makes the writes %v", writes)
		}
		if managers, _ := managersOf(h); managers != "b.example.com" {
			t.Errorf("the theme belongs to %s", managers)
		}
		if writes := restart("b.example.com", "a.example.com"); len(writes) != 0 {
			t.Errorf("a restarted operator makes the writes %v", writes)
		}
		delete(fonts, "mono")
		if writes := restart("c.example.com", "b.example.com", "a.example.com"); len(writes) != 3 {
			t.Errorf("an operator that is renamed again makes the writes %v", writes)
		}
		if managers, data := managersOf(h); managers != "c.example.com" || len(data) != 1 || data["serif"] != "x" {
			t.Errorf("the theme belongs to %s, and has %v", managers, data)
		}
		h.Patch(newTheme(), `{"data": {"serif": "y"}}`)
		h.Advance(time.Minute)
		if _, data := managersOf(h); data["serif"] != "x" {
			t.Errorf("it was not restored: %v", data)
		}
		h.Delete(one) // the garbage collector does not reach the other one
		h.Advance(time.Minute)
		far := newTheme()
		far.Namespace = "elsewhere"
		if h.Exists(far) || h.Exists(one) {
			t.Error("the parent or its child in another namespace still exists")
		}
	})
}

// The operator is killed before and after each write of the takeover.
func TestSweepOfARenamedOperator(t *testing.T) {
	kopftest.Sweep(t, func(t *testing.T, fault kopftest.Option) {
		name, formers, fonts := "a.example.com", []string(nil), map[string]string{"serif": "x", "mono": "x"}
		h := kopftest.New(t, func() *kopf.Registry {
			r := kopf.NewRegistry()
			r.Ensure(examples, themes(fonts), kopf.ID("children"), kopf.Backoff(time.Second))
			return r
		}, fault, kopftest.CRDs(definitions), kopftest.Settings(func(s *kopf.Settings) { s.Name, s.FormerNames = name, formers }))
		h.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}})
		h.Create(newExample())
		h.Advance(2 * time.Minute)
		name, formers = "b.example.com", []string{"a.example.com"}
		delete(fonts, "mono")
		h.Restart()
		h.Advance(2 * time.Minute)
		if managers, data := managersOf(h); managers != "b.example.com" || len(data) != 1 {
			t.Errorf("the theme belongs to %s, and has %v", managers, data)
		}
	})
}
