package revisions

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/rollout"
)

func TestObjectsAreHandledAgainUnderAnotherRevision(t *testing.T) {
	s := newScene(t)
	s.start("a", kopf.Revision("1"))
	s.create(3)
	s.Expect(s.marked(done("1"))).To(gomega.HaveLen(3))
	s.Expect(s.take()).To(gomega.Equal(map[string]int{"a create 1": 3}))
	s.expectWrites(3) // the annotation is part of the write that ends the handling

	s.operator.Stop()
	s.start("a", kopf.Revision("1"))
	s.expectWrites(0)

	s.operator.Stop()
	s.start("b", kopf.Revision("2"))
	s.Eventually(func() []string { return s.marked(done("2")) }).Should(gomega.HaveLen(3))
	s.Expect(s.take()).To(gomega.Equal(map[string]int{"b update 0": 3}))
	s.expectWrites(3)
	s.Expect(s.logs.With("Objects were handled under another revision")).To(gomega.ContainElement(gomega.ContainSubstring(`"objects"=3`)))

	s.operator.Stop()
	s.start("a", kopf.Revision("1")) // revisions are compared by equality: this is another one
	s.Eventually(func() []string { return s.marked(done("1")) }).Should(gomega.HaveLen(3))
	s.Expect(s.take()).To(gomega.Equal(map[string]int{"a update 0": 3}))
}

func TestObjectsWithoutARevisionAreHandledAgain(t *testing.T) {
	s := newScene(t)
	s.start("a")
	s.create(3)
	s.Expect(s.marked("fn")).To(gomega.BeEmpty()) // nobody pays without a revision
	s.expectWrites(3)
	s.take()
	s.operator.Stop()
	s.start("b", kopf.Revision("1"))
	s.Eventually(func() []string { return s.marked(done("1")) }).Should(gomega.HaveLen(3))
	s.Expect(s.take()).To(gomega.Equal(map[string]int{"b update 0": 3}))
	s.Expect(s.logs.With("never handled under a revision")).To(gomega.ContainElement(gomega.ContainSubstring(`"objects"=3`)))
}

func TestABaselineAdoptsObjects(t *testing.T) {
	s := newScene(t)
	s.start("a")
	s.create(3)
	s.expectWrites(3)
	s.take()
	s.operator.Stop()
	s.start("b", kopf.Revision("1"), kopf.Baseline())
	s.Eventually(func() []string { return s.marked(done("1")) }).Should(gomega.HaveLen(3))
	s.expectWrites(3)
	s.Expect(s.take()).To(gomega.BeEmpty())
	s.Expect(s.logs.With("never handled")).To(gomega.BeEmpty())
	s.operator.Stop()
	s.start("c", kopf.Revision("2"), kopf.Baseline()) // they are not adopted twice
	s.Eventually(func() []string { return s.marked(done("2")) }).Should(gomega.HaveLen(3))
	s.Expect(s.take()).To(gomega.Equal(map[string]int{"c update 0": 3}))
}

// An update handler is not called for new objects, but they need not be handled again.
func TestNewObjectsCountAsDone(t *testing.T) {
	s := newScene(t)
	r := kopf.NewRegistry()
	r.OnUpdate(examples, s.handler("update"), kopf.ID("fn"), kopf.Revision("1"))
	r.OnField(examples, "spec.other", s.handler("field"), kopf.ID("field"), kopf.Revision("x"))
	s.startWith(r)
	s.create(2)
	s.expectWrites(2)
	s.Expect(s.take()).To(gomega.BeEmpty())
	s.Expect(s.marked(`{"done":{"field/spec.other":"x","fn":"1"}}`)).To(gomega.HaveLen(2))
	s.patch("o001", `{"spec":{"field":"new"}}`)
	s.rest()
	s.Expect(s.take()).To(gomega.Equal(map[string]int{"update update 1": 1}))
	s.patch("o001", `{"spec":{"other":"new"}}`)
	s.rest()
	s.Expect(s.take()).To(gomega.Equal(map[string]int{"update update 1": 1, "field update 1": 1}))
}

func TestOnlyTheHandlerWithTheRevisionIsCalledAgain(t *testing.T) {
	s := newScene(t)
	declare := func(revision string) *kopf.Registry {
		r := kopf.NewRegistry()
		r.OnCreate(examples, s.handler("fn"), kopf.ID("fn"), kopf.Revision(revision))
		r.OnCreate(examples, s.handler("other"), kopf.ID("other"))
		r.OnUpdate(examples, s.handler("update"), kopf.ID("update"))
		return r
	}
	s.startWith(declare("1"))
	s.create(1)
	s.take()
	s.operator.Stop()
	s.startWith(declare("2"))
	s.Eventually(func() []string { return s.marked(done("2")) }).Should(gomega.HaveLen(1))
	s.rest()
	s.Expect(s.take()).To(gomega.Equal(map[string]int{"fn update 0": 1}))
}

// A change while no operator ran is handled together with the new revision.
func TestAChangeAndAnotherRevision(t *testing.T) {
	s := newScene(t)
	declare := func(revision string) *kopf.Registry {
		r := kopf.NewRegistry()
		r.OnCreate(examples, s.handler("fn"), kopf.ID("fn"), kopf.Revision(revision))
		r.OnUpdate(examples, s.handler("update"), kopf.ID("update"))
		return r
	}
	s.startWith(declare("1"))
	s.create(1)
	s.take()
	s.operator.Stop()
	s.patch("o001", `{"spec":{"field":"new"}}`)
	s.requests.Reset()
	s.startWith(declare("2"))
	s.Eventually(func() []string { return s.marked(done("2")) }).Should(gomega.HaveLen(1))
	s.expectWrites(1)
	s.Expect(s.take()).To(gomega.Equal(map[string]int{"fn update 1": 1, "update update 1": 1}))
}

// Retries, restarts, and sub-handlers work as for every other change.
func TestARetryUnderAnotherRevision(t *testing.T) {
	s := newScene(t)
	s.start("a", kopf.Revision("1"))
	s.create(1)
	s.operator.Stop()
	s.take()
	var attempts []string
	declare := func(delay time.Duration) {
		r := kopf.NewRegistry()
		r.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			attempts = append(attempts, fmt.Sprint(c.Reason(), " ", c.Retry()))
			if c.Retry() < 2 {
				return kopf.Temporary(errors.New("not yet"), delay)
			}
			c.Subhandler("sub", s.handlerUnlocked("sub"))
			return nil
		}, kopf.ID("fn"), kopf.Revision("2"))
		s.startWith(r)
	}
	s.requests.Reset()
	declare(time.Second)
	s.Eventually(func() int { s.mu.Lock(); defer s.mu.Unlock(); return len(attempts) }).Should(gomega.Equal(1))
	s.operator.Stop()
	s.Expect(s.marked(done("1"))).To(gomega.HaveLen(1))
	declare(10 * time.Millisecond)
	s.Eventually(func() []string { return s.marked(done("2")) }).Should(gomega.HaveLen(1))
	s.rest()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Expect(attempts).To(gomega.HaveExactElements("update 0", "update 1", "update 2"))
}

func (s *scene) handlerUnlocked(string) func(context.Context, *kopf.Change) error {
	return func(context.Context, *kopf.Change) error { return nil }
}

// A failure under a revision is final for it, until a change calls the handler, a person asks for
// it, or there is another revision.
func TestAFailureUnderARevision(t *testing.T) {
	s := newScene(t)
	s.start("a", kopf.Revision("1"))
	s.create(1)
	s.operator.Stop()
	s.take()
	s.setBroken("o001", true)
	s.start("b", kopf.Revision("2"))
	s.Eventually(func() []string { return s.marked(failed("2")) }).Should(gomega.HaveLen(1))
	s.rest()
	s.operator.Stop()
	s.start("b", kopf.Revision("2"))
	s.rest()
	s.Expect(s.take()).To(gomega.Equal(map[string]int{"b update 0": 1}))
	s.setBroken("o001", false)
	s.patch("o001", `{"metadata":{"annotations":{"kopf.zalando.org/request-rerun":"1 fn"}}}`)
	s.Eventually(func() []string { return s.marked(`{"done":{"fn":"2"}}`) }).Should(gomega.HaveLen(1))
	s.Expect(s.take()).To(gomega.Equal(map[string]int{"b resume 0": 1}))
}

func TestMistakesInRevisions(t *testing.T) {
	fn := func(context.Context, *kopf.Change) error { return nil }
	for want, declare := range map[string]func(r *kopf.Registry){
		"kopf.Revision is empty":    func(r *kopf.Registry) { r.OnCreate(examples, fn, kopf.ID("fn"), kopf.Revision("")) },
		"are about a revision: add": func(r *kopf.Registry) { r.OnCreate(examples, fn, kopf.ID("fn"), kopf.Baseline()) },
		"kopf.Rollout has no steps": func(r *kopf.Registry) { r.OnCreate(examples, fn, kopf.ID("fn"), kopf.Revision("1"), kopf.Rollout()) },
		"0 objects and 0 percent": func(r *kopf.Registry) {
			r.OnCreate(examples, fn, kopf.ID("fn"), kopf.Revision("1"), kopf.Rollout(rollout.First(0)))
		},
		`has kopf.Revision("2") here, and`: func(r *kopf.Registry) {
			r.OnCreate(examples, fn, kopf.ID("fn"), kopf.Revision("1"))
			r.OnUpdate(examples, fn, kopf.ID("fn"), kopf.Revision("2"))
		},
		"there is nothing to roll out": func(r *kopf.Registry) {
			r.OnCreate(examples, fn, kopf.ID("fn"), kopf.Revision("1"), kopf.Rollout(rollout.First(1)))
			r.OnResume(examples, fn, kopf.ID("fn"))
		},
	} {
		r := kopf.NewRegistry()
		declare(r)
		_, err := kopf.NewOperator(kopf.Options{Registry: r})
		gomega.NewWithT(t).Expect(err).To(gomega.MatchError(gomega.ContainSubstring(want)))
	}
}
