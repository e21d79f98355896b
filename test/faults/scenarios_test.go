package faults

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// scenarios are the scenarios of all experiments.
var scenarios = map[string]scenario{
	"life": {
		holds: true, ids: []string{"create", "update", "delete"},
		declare: func(d declarations) {
			d.onCreate("create", succeed)
			d.onUpdate(succeed)
			d.onDelete("delete", succeed)
		},
	},
	"results": {
		holds: true, ids: []string{"create", "update", "delete"},
		results: results{create: []string{"create"}, update: []string{"update"}}, added: []string{"update"},
		declare: func(d declarations) {
			d.onCreate("create", returnField)
			d.onUpdate(returnField)
			d.onDelete("delete", returnField)
		},
	},
	// The status is an ordinary part of the object.
	"no-subresource": {
		special: true,
		kind:    "KopfNoStatus", ids: []string{"create", "update"},
		results: results{create: []string{"create"}, update: []string{"update"}}, added: []string{"update"},
		declare: func(d declarations) {
			d.onCreate("create", returnField)
			d.onUpdate(returnField)
		},
	},
	"retries": {
		holds: true, ids: []string{"first", "second", "update", "delete"},
		declare: func(d declarations) {
			d.onCreate("first", succeed)
			d.onCreate("second", failing(2, succeed))
			d.onUpdate(failing(1, succeed))
			d.onDelete("delete", failing(1, succeed))
		},
	},
	"subhandlers": {
		ids:     []string{"create", "create/one", "create/two", "update"},
		results: results{create: []string{"create/one", "create/two"}},
		declare: func(d declarations) {
			d.onCreate("create", func(_ context.Context, c *kopf.Change) error {
				c.Subhandler("one", d.operator.handle("create/one", returnField))
				c.Subhandler("two", d.operator.handle("create/two", failing(1, returnField)))
				return nil
			})
			d.onUpdate(succeed)
		},
	},
	// A transformation that does harm if it is repeated, and plain values.
	"patches": {
		holds: true, selective: true, ids: []string{"create", "update/spec.field", "delete"},
		repeated: []string{"count"},
		declare: func(d declarations) {
			d.onCreate("create", patching("created"))
			d.onUpdate(patching("updated"), kopf.Field("spec.field"))
			d.onDelete("delete", succeed)
		},
	},
	"finalizers": {
		holds: true, ids: []string{"create", "update", "delete"}, steps: []stage{heldCreation, held, freed},
		results: results{delete: []string{"delete"}},
		declare: func(d declarations) {
			d.onCreate("create", succeed)
			d.onUpdate(succeed)
			d.onDelete("delete", failing(1, returnField))
		},
	},
	// Everything is persisted between two handlers.
	"checkpoints": {
		special: true,
		holds:   true, ids: []string{"first", "second", "third", "update", "delete", "last"}, checkpoint: time.Nanosecond,
		results: results{create: []string{"second"}},
		declare: func(d declarations) {
			d.onCreate("first", succeed)
			d.onCreate("second", returnField)
			d.onCreate("third", succeed)
			d.onUpdate(succeed)
			d.onDelete("delete", succeed)
			d.onDelete("last", succeed)
		},
	},
	// A handler writes to the object in the middle of its call, after another one has ended.
	"children": {
		special: true,
		named:   true, selective: true, ids: []string{"create", "children"}, steps: []stage{creation, deletion},
		repeated: []string{"count"},
		declare: func(d declarations) {
			d.onCreate("create", patching("created"))
			d.registry.Ensure(d.resource, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
				child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.Name()}}
				child.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
				return []client.Object{child}, nil
			}, kopf.ID("children"))
		},
	},
	// The API server rejects the edit of one of the handlers.
	"refusal": {
		special: true,
		kind:    "KopfPruned", ids: []string{"good", "known", "update"},
		declare: func(d declarations) {
			d.onCreate("good", patching("created"))
			d.onCreate("known", returnField)
			d.onUpdate(succeed)
		},
	},
	"resuming": {
		special: true,
		holds:   true, ids: []string{"both", "resume", "update", "delete"}, steps: []stage{creation, restart, update, deletion},
		repeated: []string{"phase", "count"},
		results:  results{create: []string{"both"}},
		declare: func(d declarations) {
			d.onCreateAndResume("both", returnConstant)
			d.onResume("resume", failing(1, patching("resumed")))
			d.onUpdate(succeed)
			d.onDelete("delete", succeed)
		},
	},
	// Everything happens in one pass, which writes only the handler's edit.
	"resuming-once": {
		special:   true,
		selective: true, ids: []string{"create", "resume"}, steps: []stage{creation, restart, deletion},
		repeated: []string{"phase", "count"},
		declare: func(d declarations) {
			d.onCreate("create", succeed)
			d.onResume("resume", patching("resumed"))
		},
	},
	// A daemon and a timer write to the object concurrently with change handlers.
	"background": {
		special: true,
		ids:     []string{"create", "update"}, steps: []stage{withCompany(creation), withCompany(update), deletion},
		grace: time.Second,
		declare: func(d declarations) {
			d.onCreate("create", succeed)
			d.onUpdate(succeed)
			d.registry.Daemon(d.resource, d.operator.accompany, kopf.ID("daemon"))
			d.registry.Timer(d.resource, d.operator.observe, kopf.ID("timer"), kopf.Interval(50*time.Millisecond))
		},
	},
	"events": {
		special: true,
		holds:   true, ids: []string{"create", "update", "delete"}, added: []string{"labels"}, check: labelsCounted,
		declare: func(d declarations) {
			d.registry.OnEvent(d.resource, countLabels, kopf.ID("event"))
			d.onCreate("create", succeed)
			d.onUpdate(succeed)
			d.onDelete("delete", failing(1, succeed))
		},
	},
}

// firstFinalizer is on the object from the start.
const firstFinalizer = "example.com/first"

var heldCreation = stage{name: "creation", reason: kopf.ReasonCreate, reached: handled, act: func(r *run) {
	obj := r.object.DeepCopy()
	obj.SetFinalizers([]string{firstFinalizer})
	r.do(cluster.Client().Create(r.t.Context(), obj))
}}

func succeed(context.Context, *kopf.Change) error { return nil }

func returnField(_ context.Context, c *kopf.Change) error {
	field, _ := c.Spec().String("field")
	c.SetResult(map[string]any{"field": field, "uid": string(c.UID())})
	return nil
}

func returnConstant(_ context.Context, c *kopf.Change) error {
	c.SetResult("constant")
	return nil
}

// failing fails a number of times before it does something.
func failing(times int, then func(context.Context, *kopf.Change) error) func(context.Context, *kopf.Change) error {
	return func(ctx context.Context, c *kopf.Change) error {
		if c.Retry() < times {
			return kopf.Temporary(errors.New("not yet"), 30*time.Millisecond)
		}
		return then(ctx, c)
	}
}

// patching sets a value in the status, increments a counter there, and appends an item to the
// spec, so that repetitions are visible.
func patching(item string) func(context.Context, *kopf.Change) error {
	return func(_ context.Context, c *kopf.Change) error {
		c.Patch().Merge(map[string]any{"status": map[string]any{"phase": item}})
		c.Patch().Apply(func(obj *unstructured.Unstructured) error {
			count, _, err := unstructured.NestedInt64(obj.Object, "status", "count")
			if err != nil {
				return err
			}
			items, _, err := unstructured.NestedSlice(obj.Object, "spec", "items")
			if err != nil {
				return err
			}
			_ = unstructured.SetNestedField(obj.Object, count+1, "status", "count")
			return unstructured.SetNestedSlice(obj.Object, append(items, item), "spec", "items")
		})
		return nil
	}
}

// labelsCounted checks that the last event was handled.
func labelsCounted(now state) error {
	if counted, _ := now.body.Status().Int64("labels"); counted != int64(len(now.body.Labels())) {
		return fmt.Errorf("counted %d labels instead of %d", counted, len(now.body.Labels()))
	}
	return nil
}

// countLabels writes the number of labels to the status.
func countLabels(_ context.Context, e *kopf.WatchEvent) error {
	field, _ := e.Spec().String("field")
	e.Patch().Merge(map[string]any{"status": map[string]any{"seen": field, "labels": int64(len(e.Labels()))}})
	return nil
}
