package virtual

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

func exampleDefinition() *unstructured.Unstructured {
	return kopftest.Object(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: kopfexamples.kopf.dev}}`)
}

// While a definition waits for its objects, the API server offers no patches of them, but accepts
// them.
func TestDeletedDefinitionIsServedUntilItsLastObjectIsGone(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.OnDelete(examples, func(_ context.Context, c *kopf.Change) error {
			if c.Retry() == 0 {
				return kopf.Temporary(errors.New("not now"), 4*time.Second)
			}
			return nil
		}, kopf.ID("cleanup"))
	}, func(t *testing.T, h *kopftest.Harness) {
		h.Create(exampleNamed("one"))
		h.Create(exampleNamed("two"))
		h.Advance(time.Minute)
		h.Delete(exampleDefinition())
		h.Advance(time.Minute)
		calls := map[string]int{}
		for _, call := range h.Calls("cleanup") {
			calls[call.Object]++
		}
		if calls["default/one"] != 2 || calls["default/two"] != 2 || h.Exists(exampleDefinition()) {
			t.Errorf("the calls are %v; the definition exists: %v", calls, h.Exists(exampleDefinition()))
		}
	})
}

func TestManyObjectsOfADeletedDefinitionAreFinished(t *testing.T) {
	const objects = 150
	called := 0
	withOperator(t, func(r *kopf.Registry) {
		r.OnDelete(examples, func(context.Context, *kopf.Change) error {
			called++
			time.Sleep(100 * time.Millisecond)
			return nil
		}, kopf.ID("cleanup"), kopf.Limit(1))
	}, func(t *testing.T, h *kopftest.Harness) {
		for i := range objects {
			h.Create(exampleNamed(fmt.Sprintf("example-%d", i)))
		}
		h.Advance(time.Minute)
		h.Delete(exampleDefinition())
		h.Advance(time.Minute)
		if called != objects || h.Exists(exampleDefinition()) {
			t.Errorf("%d calls; the definition exists: %v", called, h.Exists(exampleDefinition()))
		}
	})
}

func TestOperatorThatStartsAfterTheDeletionOfADefinitionFinishesItsObjects(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.OnDelete(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("cleanup"))
	}, func(t *testing.T, h *kopftest.Harness) {
		h.Create(exampleNamed("one"))
		h.Create(exampleNamed("two"))
		h.Advance(time.Minute)
		h.Stop()
		h.Delete(exampleDefinition())
		h.Start()
		h.Advance(time.Minute)
		if called := len(h.Calls("cleanup")); called != 2 || h.Exists(exampleDefinition()) {
			t.Errorf("%d calls; the definition exists: %v", called, h.Exists(exampleDefinition()))
		}
		for _, line := range h.Logs() {
			if strings.Contains(fmt.Sprint(line), "declare only event handlers") {
				t.Errorf("got %v", line)
			}
		}
	})
}

// A definition that returns is served again, also if the operator has seen its end.
func TestDefinitionThatReturnsIsServed(t *testing.T) {
	called := 0
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, func(context.Context, *kopf.Change) error { called++; return nil }, kopf.ID("create"))
		r.OnDelete(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("cleanup"))
	}, func(t *testing.T, h *kopftest.Harness) {
		h.Create(newExample())
		definition := exampleDefinition()
		h.Get(definition)
		h.Advance(time.Minute)
		h.Delete(exampleDefinition())
		h.Advance(time.Minute)
		again := exampleDefinition()
		again.Object["spec"] = definition.Object["spec"]
		h.Create(again)
		h.Advance(time.Minute)
		h.Create(newExample())
		h.Advance(time.Minute)
		if called != 2 {
			t.Errorf("%d calls", called)
		}
	})
}
