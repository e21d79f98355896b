// This example changes a handler, and lets the change reach the existing objects step by step:
// one object at first, then half of all at a time. It stops when an object fails.
//
// Run it, create some objects, and run it again with REVISION=2 in its environment. Objects
// without a page fail under that revision, and the others wait until the object is corrected:
//
//	kubectl patch kopfexample kopf-example-2 --type=merge -p '{"spec": {"page": "index"}}'
//
// The conditions of the objects show the same to other tools:
//
//	kubectl wait --for=condition=Ready kopfexample --all
package main

import (
	"cmp"
	"context"
	"errors"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/rollout"
)

// revision is a constant in a real operator. Change it when existing objects must be handled
// again.
var revision = cmp.Or(os.Getenv("REVISION"), "1")

func render(_ context.Context, c *kopf.Change) error {
	page, ok := c.Spec().String("page")
	if !ok && revision != "1" {
		return kopf.Permanent(errors.New("since revision 2, spec.page must be set"))
	}
	c.Logger().Info("The page is rendered.", "page", page, "reason", c.Reason(), "changes", len(c.Diff()))
	c.SetCondition(metav1.Condition{Type: "Rendered", Status: metav1.ConditionTrue, Reason: "UpToDate", Message: "by revision " + revision})
	c.SetResult(map[string]any{"page": page, "revision": revision})
	return nil
}

func main() {
	examples := kopf.Resource("kopfexamples")
	kopf.OnCreate(examples, render, kopf.Revision(revision), kopf.Rollout(rollout.First(1), rollout.ThenPercent(50)))
	kopf.OnUpdate(examples, render)
	kopf.Conditions(examples)
	kopf.Main()
}
