package kills

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	steps "github.com/kopf-go/kopf/pkg/model/rollout"
	"github.com/kopf-go/kopf/test/kopfrules"
	"github.com/kopf-go/kopf/test/testenv"
)

// rollout is the life of six objects that get to the second revision of a handler two by two. The
// third one fails under it, until the cause is corrected.
type rollout struct {
	*life
	revision string

	// These are guarded by the mutex of the life.
	corrected bool
	done, bad map[string]bool // the objects that have succeeded and failed under the revision
	calls     map[string]int  // under the second revision
	mistakes  []string
}

const (
	objects   = 6
	bad       = "o3"
	revisions = "kopf.zalando.org/handled-revisions"
)

// The operator is killed at every write of a rollout that stops and continues.
func TestRolloutsSurviveAKillAtEveryWrite(t *testing.T) {
	t.Parallel()
	sweep(t, func(t *testing.T, k kill) (writes int) {
		t.Helper()
		r := &rollout{revision: "1", done: map[string]bool{}, bad: map[string]bool{}, calls: map[string]int{}}
		r.life = newLife(t, kill{}, r.declareHandler)
		r.watching = r.record
		r.create()
		before := r.count()
		r.kill = kill{k.number + before, k.after}
		if k.number == 0 {
			r.kill = k
		}
		r.live()
		return r.count() - before
	})
}

func (r *rollout) declareHandler(registry *kopf.Registry) {
	revision := r.revision
	registry.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
		if revision == "1" {
			return nil
		}
		return r.handle(c.Name())
	}, kopf.ID("fn"), kopf.Revision(revision), kopf.Rollout(steps.First(2), steps.Then(2)))
}

// handle is the handler under the second revision. It knows what must not happen.
func (r *rollout) handle(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[name]++
	switch {
	case r.done[name]:
		r.mistakes = append(r.mistakes, name+" was called after its success was recorded")
	case r.bad[name] && !r.corrected:
		r.mistakes = append(r.mistakes, name+" was called after its failure was recorded")
	}
	for _, earlier := range r.before(name) {
		if !r.done[earlier] {
			r.mistakes = append(r.mistakes, name+" was called before "+earlier+" of an earlier step has succeeded")
		}
	}
	if name == bad && !r.corrected {
		return kopf.Permanent(errors.New("the cause is not corrected"))
	}
	return nil
}

// before returns the objects in the steps before that of an object.
func (r *rollout) before(name string) []string {
	all := []string{"o1", "o2", "o3", "o4", "o5", "o6"}
	position := slices.Index(all, name)
	return all[:position-position%2]
}

// record remembers what has reached the API server. The mutex is locked.
func (r *rollout) record(w write) {
	obj := &unstructured.Unstructured{}
	if !w.hasSucceeded() || json.Unmarshal(w.answer, &obj.Object) != nil {
		return
	}
	marks := obj.GetAnnotations()[revisions]
	r.done[obj.GetName()] = strings.Contains(marks, `"done":{"fn":"2"}`)
	r.bad[obj.GetName()] = strings.Contains(marks, `"failed":{"fn":"2"}`)
}

// create creates the objects under the first revision.
func (r *rollout) create() {
	r.t.Helper()
	r.start()
	for n := range objects {
		obj := testenv.NewObject("KopfExample", r.namespace, fmt.Sprintf("o%d", n+1), map[string]any{"field": "value"})
		r.Expect(cluster.Client().Create(r.t.Context(), obj)).To(gomega.Succeed())
	}
	r.eventually("created", func(g gomega.Gomega) { g.Expect(r.marked(`"done":{"fn":"1"}`)).To(gomega.HaveLen(objects)) })
	r.rest()
	r.process.operator.Stop()
}

func (r *rollout) live() {
	r.t.Helper()
	r.revision = "2"
	r.start()
	r.eventually("stopped", func(g gomega.Gomega) {
		g.Expect(r.marked(`"failed":{"fn":"2"}`)).To(gomega.Equal([]string{bad}))
		g.Expect(r.logs.With("The rollout of revision 2 of handler fn is stopped: 1 of 6 objects has failed")).NotTo(gomega.BeEmpty())
		g.Expect(r.process.dead.Load()).To(gomega.BeFalse())
	})
	r.rest()
	stopped := []string{"o1", "o2", "o4"}
	if done := r.marked(`"done":{"fn":"2"}`); r.kill.number == 0 || slices.Contains(done, "o4") {
		r.Expect(done).To(gomega.Equal(stopped), r.story)
	} else { // a restart with a failure does not continue the step
		r.Expect(done).To(gomega.Equal(stopped[:2]), r.story)
	}

	r.mu.Lock()
	r.corrected = true
	r.mu.Unlock()
	obj := testenv.NewObject("KopfExample", r.namespace, bad, nil)
	rerun := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"kopf.zalando.org/request-rerun":"1 fn"}}}`))
	r.Expect(cluster.Client().Patch(r.t.Context(), obj, rerun)).To(gomega.Succeed())
	r.eventually("continued", func(g gomega.Gomega) { g.Expect(r.marked(`"done":{"fn":"2"}`)).To(gomega.HaveLen(objects)) })
	r.rest()
	r.expectCalls()
	r.expectNothingForKopf()

	before := len(r.life.done())
	r.restart()
	r.rest()
	r.Expect(r.life.done()[before:]).To(gomega.BeEmpty(), r.story)
}

// expectCalls expects that nothing was called too early or again after its record. Only the two
// calls that the operator has not recorded when it dies are repeated.
func (r *rollout) expectCalls() {
	r.t.Helper()
	r.mu.Lock()
	mistakes, total := r.mistakes, 0
	for _, calls := range r.calls {
		total += calls
	}
	r.mu.Unlock()
	repeated := 0
	if r.kill.number > 0 {
		repeated = 2
	}
	r.Expect(mistakes).To(gomega.BeEmpty(), r.story)
	r.Expect(total).To(gomega.And(gomega.BeNumerically(">=", objects+1), gomega.BeNumerically("<=", objects+1+repeated)), r.story)
}

// expectNothingForKopf looks at the objects as a Kopf does that takes over now.
func (r *rollout) expectNothingForKopf() {
	r.t.Helper()
	for _, obj := range r.list() {
		for initial, nothing := range map[bool]string{true: "resume", false: "noop"} {
			r.Expect(kopfrules.Cause(&obj, initial)).To(gomega.Equal(nothing), obj.GetName())
		}
		r.Expect(kopfrules.Records(obj.GetAnnotations())).To(gomega.BeEmpty(), obj.GetName())
		r.Expect(obj.GetFinalizers()).To(gomega.BeEmpty(), obj.GetName())
	}
}

func (r *rollout) list() []unstructured.Unstructured {
	r.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(shopKind)
	r.Expect(cluster.Client().List(r.t.Context(), list, client.InNamespace(r.namespace))).To(gomega.Succeed())
	return list.Items
}

// marked returns the names of the objects whose mark contains a text.
func (r *rollout) marked(text string) []string {
	r.t.Helper()
	var names []string
	for _, obj := range r.list() {
		if strings.Contains(obj.GetAnnotations()[revisions], text) {
			names = append(names, obj.GetName())
		}
	}
	return names
}
