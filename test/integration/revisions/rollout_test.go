package revisions

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/rollout"
	"github.com/kopf-go/kopf/test/kopfrules"
)

var careful = kopf.Rollout(rollout.First(5), rollout.ThenPercent(10))

// numbers returns the names of objects, from the first to the last one.
func numbers(first, last int) []string {
	var names []string
	for n := first; n <= last; n++ {
		names = append(names, fmt.Sprintf("o%03d", n))
	}
	return names
}

// One hundred objects, of which the third fails under revision 2.
func TestARolloutStopsAfterAFailure(t *testing.T) {
	s := newScene(t)
	s.start("a", kopf.Revision("1"))
	s.create(100)
	s.operator.Stop()
	s.take()
	s.setBroken("o003", true)

	s.start("b", kopf.Revision("2"), careful)
	s.Eventually(func() []string { return s.marked(failed("2")) }).Should(gomega.Equal([]string{"o003"}))
	s.rest()
	s.Expect(s.called()).To(gomega.Equal(numbers(1, 5)))
	s.Expect(s.marked(done("2"))).To(gomega.Equal([]string{"o001", "o002", "o004", "o005"}))
	const stopped = "The rollout of revision 2 of handler fn is stopped: 1 of 100 objects has failed, and 95 wait."
	s.Expect(s.logs.With(stopped)).To(gomega.HaveLen(1))
	s.Eventually(s.eventsOf("o003")).Should(gomega.ContainElement(gomega.HavePrefix("Warning RolloutStopped: " + stopped)))
	s.Expect(s.take()).To(gomega.Equal(map[string]int{"b update 0": 5}))

	// A restart says so again, and begins nothing.
	s.operator.Stop()
	s.requests.Reset()
	s.start("b", kopf.Revision("2"), careful)
	s.expectWrites(0)
	s.Expect(s.called()).To(gomega.BeEmpty())
	s.Expect(s.logs.With(stopped)).To(gomega.HaveLen(1))

	// A new object and a changed one do not wait.
	s.Expect(cluster.Client().Create(t.Context(), s.object("o101"))).To(gomega.Succeed())
	s.Eventually(func() []string { return s.marked(done("2")) }).Should(gomega.ContainElement("o101"))
	s.rest()
	s.Expect(s.take()).To(gomega.Equal(map[string]int{"b create 1": 1}))

	// The object is corrected.
	s.setBroken("o003", false)
	s.patch("o003", `{"metadata":{"annotations":{"kopf.zalando.org/request-rerun":"1 fn"}}}`)
	s.Eventually(func() []string { return s.marked(done("2")) }).Should(gomega.HaveLen(101))
	s.Expect(s.marked(failed(""))).To(gomega.BeEmpty())
	s.rest()
	s.Expect(s.take()).To(gomega.Equal(map[string]int{"b resume 0": 1, "b update 0": 95}))
	s.Expect(s.logs.With("The rollout continues")).To(gomega.HaveLen(1))
	s.Expect(s.logs.With("The rollout has ended")).To(gomega.HaveLen(1))
	s.expectKopfHasNothingToDo()

	s.operator.Stop()
	s.requests.Reset()
	s.start("b", kopf.Revision("2"), careful)
	s.expectWrites(0)
}

// A corrected handler has another revision, which reaches all objects again.
func TestARolloutContinuesWithAnotherRevision(t *testing.T) {
	s := newScene(t)
	s.start("a", kopf.Revision("1"))
	s.create(20)
	s.operator.Stop()
	s.setBroken("o003", true)
	s.start("b", kopf.Revision("2"), careful)
	s.Eventually(func() []string { return s.marked(failed("2")) }).Should(gomega.HaveLen(1))
	s.rest()
	s.operator.Stop()
	s.setBroken("o003", false)
	s.take()
	s.start("c", kopf.Revision("3"), careful)
	s.Eventually(func() []string { return s.marked(done("3")) }).Should(gomega.HaveLen(20))
	s.rest()
	s.Expect(s.take()).To(gomega.Equal(map[string]int{"c update 0": 20}))
}

// The last object fails, so none waits when the rollout ends.
func TestARolloutThatEndsWithFailuresIsAnError(t *testing.T) {
	s := newScene(t)
	s.start("a", kopf.Revision("1"))
	s.create(3)
	s.operator.Stop()
	s.setBroken("o003", true)
	s.start("b", kopf.Revision("2"), careful)
	s.Eventually(func() []string {
		return s.logs.With("The rollout of revision 2 of handler fn has ended: 1 of 3 objects has failed. Correct the objects, ", `"error"=null`, "o003")
	}).Should(gomega.HaveLen(1), s.logs.String)
	s.Expect(s.marked(done("2"))).To(gomega.Equal([]string{"o001", "o002"}))
	s.Expect(s.logs.With("The rollout has ended")).To(gomega.BeEmpty())
}

// The operator is stopped in every step. No object is handled twice, and the steps are the same
// as without restarts.
func TestARolloutSurvivesRestartsAtEveryStep(t *testing.T) {
	s := newScene(t)
	const count = 30
	s.start("a", kopf.Revision("1"))
	s.create(count)
	s.operator.Stop()
	s.take()
	plan := kopf.Rollout(rollout.First(2), rollout.Then(3), rollout.ThenPercent(20))
	for _, limit := range []int{2, 5, 11, 17, 23, 29, 30} {
		last := fmt.Sprintf("o%03d", limit)
		s.setBroken(last, true) // holds the rollout at the end of the step
		s.start("b", kopf.Revision("2"), plan)
		s.Eventually(func() []string { return s.marked(failed("2")) }).Should(gomega.Equal([]string{last}))
		s.rest()
		s.Expect(s.marked(done("2"))).To(gomega.HaveLen(limit - 1))
		s.operator.Stop()
		s.setBroken(last, false)
		s.start("b", kopf.Revision("2"), kopf.Rollout(rollout.First(1)))
		s.rest() // a restart with the failure begins nothing
		s.Expect(append(s.marked(done("2")), s.marked(failed("2"))...)).To(gomega.HaveLen(limit))
		s.operator.Stop()
		// Pretend that the object was corrected while no operator ran.
		s.patch(last, `{"metadata":{"annotations":{"`+revisions+`":"{\"done\":{\"fn\":\"2\"}}"}}}`)
	}
	s.Expect(s.marked(done("2"))).To(gomega.HaveLen(count))
	s.Expect(s.take()).To(gomega.Equal(map[string]int{"b update 0": count}))
	s.expectKopfHasNothingToDo()
}

func (s *scene) eventsOf(name string) func() ([]string, error) {
	for _, obj := range s.list() {
		if obj.GetName() == name {
			return cluster.Events(&obj)
		}
	}
	return nil
}

// expectKopfHasNothingToDo looks at all objects as a Kopf does that takes over: no object has
// changed, no handler has a record, and there is no finalizer.
func (s *scene) expectKopfHasNothingToDo() {
	s.t.Helper()
	for _, obj := range s.list() {
		s.Expect(kopfrules.Cause(&obj, false)).To(gomega.Equal("noop"), obj.GetName())
		s.Expect(kopfrules.Records(obj.GetAnnotations())).To(gomega.BeEmpty(), obj.GetName())
		for key := range obj.GetAnnotations() {
			s.Expect(slices.Contains([]string{handled, revisions}, key) || strings.HasPrefix(key, prefix+"request")).To(gomega.BeTrue(), key)
		}
		s.Expect(obj.GetFinalizers()).To(gomega.BeEmpty())
	}
}
