package reconcile

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/watch"
)

func TestMessagesNameObjectsAsKubectlDoes(t *testing.T) {
	core := discovery.SelectedResource{Resource: selector.Resource{Version: "v1", Plural: "nodes", Kind: "Node"}}
	for want, target := range map[string]target{
		"kopfexamples.kopf.dev a -n ns": {resource: newResource(watch.NewResource(kex, &kube.Client{}), nil), key: keyOf("a")},
		"nodes a":                       {resource: newResource(watch.NewResource(core, &kube.Client{}), nil), key: object.Key{NamespacedName: types.NamespacedName{Name: "a"}}},
	} {
		if got := target.kubectlName(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSetConditionAddsOrReplacesCondition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := time.Now().UTC().Format(time.RFC3339)
		time.Sleep(time.Hour)
		now := time.Now().UTC().Format(time.RFC3339)
		condition := func(status, message, since string) m {
			return m{"type": "DeletionHeld", "status": status, "reason": "HandlerFailed", "message": message, "lastTransitionTime": since}
		}
		other := m{"type": "Ready", "status": "False"}
		tests := map[string]struct{ conditions, want []any }{
			"the first one":              {nil, []any{condition("True", "new", now)}},
			"next to others":             {[]any{other}, []any{other, condition("True", "new", now)}},
			"in place of an earlier one": {[]any{condition("False", "old", before), other}, []any{condition("True", "new", now), other}},
			"it was true before":         {[]any{condition("True", "old", before)}, []any{condition("True", "new", before)}},
			"nothing has changed":        {[]any{condition("True", "new", before)}, []any{condition("True", "new", before)}},
			"next to an invalid one":     {[]any{"text"}, []any{"text", condition("True", "new", now)}},
			"next to one without a type": {[]any{m{}}, []any{m{}, condition("True", "new", now)}},
		}
		for name, test := range tests {
			obj := m{"status": m{}}
			if test.conditions != nil {
				obj = m{"status": m{"conditions": test.conditions}}
			}
			if err := setCondition(obj, "DeletionHeld", "new"); err != nil || !reflect.DeepEqual(obj, m{"status": m{"conditions": test.want}}) {
				t.Errorf("%s: got %v, %v", name, obj, err)
			}
		}
		for name, obj := range map[string]m{"no room in the status": {"status": "text"}, "no list": {"status": m{"conditions": "text"}}} {
			if err := setCondition(obj, "DeletionHeld", "new"); err == nil {
				t.Errorf("%s: got %v", name, obj)
			}
		}
	})
}
