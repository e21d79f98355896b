package virtual

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

const unknownField = "A handler is for a field that does not exist."

const gadgetDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.kopf.dev}
spec:
  group: kopf.dev
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets, singular: gadget}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}, labels: {type: object, additionalProperties: {type: string}}}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

// declareFields declares handlers of fields, of which two do not exist.
func declareFields(r *kopf.Registry) {
	gadgets := kopf.Resource("gadgets")
	fn := func(context.Context, *kopf.Change) error { return nil }
	for i, field := range []string{"spec.siez", "spec.size", "spec.labels.any", "status.any", "metadata.labels.any"} {
		r.OnField(gadgets, field, fn, kopf.ID(fmt.Sprint("fn", i)))
	}
	r.Timer(gadgets, func(context.Context, *kopf.Tick) error { return nil }, kopf.ID("timer"), kopf.Field("size"), kopf.Interval(time.Hour))
	r.OnField(kopf.Resource("v1", "configmaps"), "dat.color", fn, kopf.ID("built-in"))
	r.OnField(examples, "spec.siez", fn, kopf.ID("open"))
}

func TestAMistypedFieldIsReportedOnce(t *testing.T) {
	withOperator(t, declareFields, func(t *testing.T, h *kopftest.Harness) {
		h.Create(kopftest.Object(gadgetDefinition))
		h.Advance(time.Hour)
		h.Create(kopftest.Object(`{apiVersion: kopf.dev/v1, kind: Gadget, metadata: {namespace: default, name: one}, spec: {size: 3}}`))
		h.Advance(time.Hour)
		var got []string
		for _, line := range linesWith(h, unknownField) {
			_, problem, _ := strings.Cut(line.Err.Error(), ": ")
			got = append(got, problem)
		}
		slices.Sort(got)
		want := []string{
			`the field handler "built-in/dat.color": the objects of configmaps.v1 have no field "dat.color": did you mean "data.color"?`,
			`the field handler "fn0/spec.siez": the objects of gadgets.v1.kopf.dev have no field "spec.siez": did you mean "spec.size"?`,
			`the timer handler "timer/size": the objects of gadgets.v1.kopf.dev have no field "size": did you mean "spec.size"?`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %s", strings.Join(got, "\n"))
		}
		if calls := h.Calls("fn1/spec.size"); len(calls) != 1 {
			t.Errorf("got %v", calls)
		}
	})
}

// The definition is read only to help: the operator works without it.
func TestFieldsAreNotCheckedWithoutTheDefinitions(t *testing.T) {
	withOperator(t, declareFields, func(t *testing.T, h *kopftest.Harness) {
		h.Stop()
		h.Create(kopftest.Object(gadgetDefinition))
		h.Start()
		known := len(linesWith(h, unknownField))
		h.Stop()
		h.Fail(kopftest.Requests{Verb: "list", Resource: "customresourcedefinitions"}, 0, errors.New("broken"))
		h.Start()
		h.Create(kopftest.Object(`{apiVersion: kopf.dev/v1, kind: Gadget, metadata: {namespace: default, name: one}, spec: {size: 3}}`))
		h.Settle()
		calls := h.Calls("fn1/spec.size")
		if len(calls) != 1 || calls[0].Err != nil {
			t.Errorf("got %v", calls)
		}
		added := linesWith(h, unknownField)[known:]
		if len(added) != 1 || !strings.Contains(added[0].Err.Error(), "dat.color") {
			t.Errorf("got %v", added)
		}
	})
}
