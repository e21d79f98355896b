package revisions

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/rollout"
	"github.com/kopf-go/kopf/pkg/peering"
	"github.com/kopf-go/kopf/test/testenv"
)

// A person pauses the operator in the middle of a step. The calls that have begun end, and nothing
// else moves, not even after a restart, until the person lets the operator continue.
func TestARolloutWaitsDuringAPause(t *testing.T) {
	s := newScene(t)
	meeting := testenv.NewObject("KopfPeering", s.namespace, "default", nil)
	s.Expect(cluster.Client().Create(t.Context(), meeting)).To(gomega.Succeed())
	target := peering.Target{Name: "default", Namespace: s.namespace}
	s.start("a", kopf.Revision("1"))
	s.create(20)
	s.operator.Stop()
	s.take()

	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(open)
	start := func() {
		r, call := kopf.NewRegistry(), s.handler("b")
		r.OnCreate(examples, func(ctx context.Context, c *kopf.Change) error {
			err := call(ctx, c)
			if c.Name() == "o003" {
				<-gate
			}
			return err
		}, kopf.ID("fn"), kopf.Revision("2"), kopf.Rollout(rollout.First(5), rollout.Then(5)))
		s.startWith(r)
	}
	start()
	s.Eventually(func() []string { return s.marked(done("2")) }).Should(gomega.Equal([]string{"o001", "o002", "o004", "o005"}))
	frozen, err := peering.Freeze(t.Context(), cluster.Config(), target, peering.FreezeOptions{Priority: peering.DefaultFreezePriority, Lifetime: time.Hour})
	s.Expect(frozen.Paused, err).To(gomega.HaveLen(1))
	s.Eventually(func() bool { return s.operator.State().Paused }).Should(gomega.BeTrue())
	open()
	s.Eventually(func() []string { return s.marked(done("2")) }).Should(gomega.Equal(numbers(1, 5)), "the call that has begun ends")
	s.Eventually(func() []string { return s.logs.With("The operator is paused.") }).ShouldNot(gomega.BeEmpty())

	s.requests.Reset()
	s.Expect(cluster.Client().Create(t.Context(), s.object("o021"))).To(gomega.Succeed())
	s.patch("o012", `{"spec":{"field":"changed"}}`)
	s.expectWrites(0)
	s.operator.Stop()
	start()
	s.expectWrites(0)
	s.Expect(s.take()).To(gomega.Equal(map[string]int{"b update 0": 5}))

	s.Expect(peering.Resume(t.Context(), cluster.Config(), target, "")).To(gomega.Succeed())
	s.Eventually(func() []string { return s.marked(done("2")) }).Should(gomega.HaveLen(21))
	s.rest()
	s.Expect(s.take()).To(gomega.Equal(map[string]int{"b create 1": 1, "b update 0": 15}))
	s.Expect(s.marked(failed(""))).To(gomega.BeEmpty())
	s.Expect(s.logs.With("The rollout has ended")).To(gomega.HaveLen(1))
}
