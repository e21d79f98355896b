package configurations

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onsi/gomega"
)

// mentions counts the lines with the text.
func (c *cluster) mentions(text string) int {
	return strings.Count(strings.Join(c.logged(), "\n"), text)
}

const (
	changedByOthers = "Somebody else has changed the webhooks of this operator."
	removedByOthers = "Somebody has removed the admission configuration of this operator."
)

func TestTwoOperatorsOfOneNameSaySoAndDoNotStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := gomega.NewWithT(t), newCluster()
		for _, address := range []string{"https://a/", "https://b/"} {
			m := NewManager(c, managed, c.logger())
			lead(t, m)
			m.SetHooks([]Hook{hook("a")})
			g.Expect(m.Publish(t.Context(), at(address))).To(gomega.Succeed())
			time.Sleep(minCheckInterval / 4)
		}
		g.Expect(c.mentions(changedByOthers)).To(gomega.BeZero())
		time.Sleep(minCheckInterval)
		synctest.Wait()
		g.Expect(c.mentions(changedByOthers)).To(gomega.BeNumerically(">=", 1), "%v", c.logged())

		time.Sleep(time.Hour)
		synctest.Wait()
		before, mentioned := c.written(), c.mentions(changedByOthers)
		time.Sleep(time.Hour)
		synctest.Wait()
		g.Expect(c.written() - before).To(gomega.And(gomega.BeNumerically(">", 0), gomega.BeNumerically("<=", 2*6+2)))
		g.Expect(c.mentions(changedByOthers) - mentioned).To(gomega.BeNumerically("<=", 2*6+2))
		g.Expect(c.mentions("The cluster asks the admission handlers.")).To(gomega.Equal(2), "what is written again is no news")
	})
}

// A change of our own never waits, whatever others do.
func TestOwnChangesAreWrittenAtOnceInADispute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := gomega.NewWithT(t), newCluster()
		m := NewManager(c, managed, c.logger())
		lead(t, m)
		m.SetHooks([]Hook{hook("a")})
		g.Expect(m.Publish(t.Context(), at("https://h/"))).To(gomega.Succeed())
		spoil := func() {
			spoiled := c.validating(g)
			spoiled.Webhooks[0].ClientConfig.URL = new("https://spoiled/")
			g.Expect(c.Update(t.Context(), spoiled)).To(gomega.Succeed())
		}
		spoil()
		m.SetHooks([]Hook{hook("a")}) // wakes it, and is no change
		synctest.Wait()
		g.Expect(c.written()).To(gomega.Equal(2), "the first time at once")
		spoil()
		m.SetHooks([]Hook{hook("a")})
		synctest.Wait()
		g.Expect(c.written()).To(gomega.Equal(2), "the second time after a pause")
		g.Expect(m.Publish(t.Context(), at("https://other/"))).To(gomega.Succeed())
		g.Expect(c.written()).To(gomega.Equal(3))
		spoil()
		time.Sleep(2*minCheckInterval + time.Second)
		synctest.Wait()
		g.Expect(c.written()).To(gomega.Equal(4))
		g.Expect(c.mentions(changedByOthers)).To(gomega.Equal(1), "%v", c.logged())
		time.Sleep(reportInterval)
		spoil()
		time.Sleep(maxCheckInterval)
		synctest.Wait()
		g.Expect(c.mentions(changedByOthers)).To(gomega.Equal(2), "%v", c.logged())
	})
}

func TestARemovedConfigurationIsMentioned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := gomega.NewWithT(t), newCluster()
		m := NewManager(c, managed, c.logger())
		lead(t, m)
		m.SetHooks([]Hook{hook("a")})
		g.Expect(m.Publish(t.Context(), at("https://h/"))).To(gomega.Succeed())
		g.Expect(c.Delete(t.Context(), c.validating(g))).To(gomega.Succeed())
		time.Sleep(minCheckInterval + time.Second)
		synctest.Wait()
		g.Expect(c.validating(g).Webhooks).To(gomega.HaveLen(1))
		g.Expect(c.mentions(removedByOthers)).To(gomega.Equal(1), "%v", c.logged())
	})
}

func TestTheLogSaysWhatTheClusterKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := gomega.NewWithT(t), newCluster()
		m := NewManager(c, managed, c.logger())
		lead(t, m)
		m.SetHooks(nil)
		g.Expect(m.Publish(t.Context(), at("https://h/"))).To(gomega.Succeed())
		g.Expect(c.logged()).To(gomega.BeEmpty(), "there is nothing to say")
		m.SetHooks([]Hook{hook("a"), hook("b", func(h *Hook) { h.Validating = false })})
		synctest.Wait()
		time.Sleep(time.Hour)
		g.Expect(m.Cleanup(t.Context())).To(gomega.Succeed())
		g.Expect(c.logged()).To(gomega.HaveExactElements(
			gomega.ContainSubstring(`"The cluster asks the admission handlers." "configuration"="auto.kopf.dev" "validating"=1 "mutating"=1 "url"="https://h/"`),
			gomega.ContainSubstring("the configurations have no webhooks"),
		))
	})
}

// What could not be written is tried again as ever.
func TestAFailureInADisputeIsNoPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := gomega.NewWithT(t), newCluster()
		m := NewManager(c, managed, c.logger())
		lead(t, m)
		m.SetHooks([]Hook{hook("a")})
		g.Expect(m.Publish(t.Context(), at("https://h/"))).To(gomega.Succeed())
		g.Expect(c.Delete(t.Context(), c.validating(g))).To(gomega.Succeed())
		c.refuses(errors.New("no cluster"))
		time.Sleep(minCheckInterval)
		synctest.Wait()
		c.refuses(nil)
		time.Sleep(minRetryDelay)
		synctest.Wait()
		g.Expect(c.validating(g).Webhooks).To(gomega.HaveLen(1))
	})
}
