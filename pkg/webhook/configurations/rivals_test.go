package configurations

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onsi/gomega"
)

// countLogged counts the log lines with the text.
func (c *cluster) countLogged(text string) int {
	return strings.Count(strings.Join(c.logged(), "\n"), text)
}

const (
	changedByOthers = "Another client has changed the webhooks of this operator."
	deletedByOthers = "Another client has deleted the admission configuration of this operator."
)

func TestTwoOperatorsWithOneNameAreLoggedAndSlowedDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := gomega.NewWithT(t), newCluster()
		for _, address := range []string{"https://a/", "https://b/"} {
			m := NewManager(c, managed, c.logger())
			lead(t, m)
			m.SetHooks([]Hook{hook("a")})
			g.Expect(m.Publish(t.Context(), at(address))).To(gomega.Succeed())
			time.Sleep(checkInterval / 4)
		}
		g.Expect(c.countLogged(changedByOthers)).To(gomega.BeZero())
		time.Sleep(checkInterval)
		synctest.Wait()
		g.Expect(c.countLogged(changedByOthers)).To(gomega.BeNumerically(">=", 1), "%v", c.logged())

		time.Sleep(time.Hour)
		synctest.Wait()
		before, logged := c.written(), c.countLogged(changedByOthers)
		time.Sleep(time.Hour)
		synctest.Wait()
		g.Expect(c.written() - before).To(gomega.And(gomega.BeNumerically(">", 0), gomega.BeNumerically("<=", 2*6+2)))
		g.Expect(c.countLogged(changedByOthers) - logged).To(gomega.BeNumerically("<=", 2*6+2))
		g.Expect(c.countLogged("The cluster calls the admission handlers.")).To(gomega.Equal(2), "restored webhooks are not logged as a change")
	})
}

// The operator's own changes never wait, whatever other clients do.
func TestOwnChangesAreWrittenAtOnceDuringContention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := gomega.NewWithT(t), newCluster()
		m := NewManager(c, managed, c.logger())
		lead(t, m)
		m.SetHooks([]Hook{hook("a")})
		g.Expect(m.Publish(t.Context(), at("https://h/"))).To(gomega.Succeed())
		overwrite := func() {
			overwritten := c.validating(g)
			overwritten.Webhooks[0].ClientConfig.URL = new("https://overwritten/")
			g.Expect(c.Update(t.Context(), overwritten)).To(gomega.Succeed())
		}
		overwrite()
		m.SetHooks([]Hook{hook("a")}) // wakes the leader without a change
		synctest.Wait()
		g.Expect(c.written()).To(gomega.Equal(2), "the first time at once")
		overwrite()
		m.SetHooks([]Hook{hook("a")})
		synctest.Wait()
		g.Expect(c.written()).To(gomega.Equal(2), "the second time after a pause")
		g.Expect(m.Publish(t.Context(), at("https://other/"))).To(gomega.Succeed())
		g.Expect(c.written()).To(gomega.Equal(3))
		overwrite()
		time.Sleep(2*checkInterval + time.Second)
		synctest.Wait()
		g.Expect(c.written()).To(gomega.Equal(4))
		g.Expect(c.countLogged(changedByOthers)).To(gomega.Equal(1), "%v", c.logged())
		time.Sleep(reportInterval)
		overwrite()
		time.Sleep(maxPause)
		synctest.Wait()
		g.Expect(c.countLogged(changedByOthers)).To(gomega.Equal(2), "%v", c.logged())
	})
}

// After the pause, changes are restored within a minute again. After twice the pause, the next change is the first one.
func TestContentionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := gomega.NewWithT(t), newCluster()
		m := NewManager(c, managed, c.logger())
		lead(t, m)
		m.SetHooks([]Hook{hook("a")})
		g.Expect(m.Publish(t.Context(), at("https://h/"))).To(gomega.Succeed())
		writes := c.written()
		overwrite := func() {
			overwritten := c.validating(g)
			overwritten.Webhooks[0].ClientConfig.URL = new("https://overwritten/")
			g.Expect(c.Update(t.Context(), overwritten)).To(gomega.Succeed())
			writes++
		}
		restored := func(within time.Duration) {
			t.Helper()
			time.Sleep(within - checkInterval/2)
			g.Expect(c.written()).To(gomega.Equal(writes-1), "it is restored too early")
			time.Sleep(checkInterval)
			g.Expect(c.written()).To(gomega.Equal(writes), "it is restored too late")
		}
		time.Sleep(checkInterval / 2) // between two comparisons
		for _, pause := range []time.Duration{checkInterval, 2 * checkInterval, 4 * checkInterval, 8 * checkInterval, maxPause, maxPause} {
			overwrite()
			restored(pause - checkInterval/2)
		}

		time.Sleep(maxPause)
		overwrite()
		restored(checkInterval / 2)
		overwrite()
		restored(maxPause - checkInterval/2)

		time.Sleep(2*maxPause + checkInterval)
		overwrite()
		restored(checkInterval / 2)
		overwrite()
		restored(2*checkInterval - checkInterval/2)
	})
}

func TestDeletedConfigurationIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := gomega.NewWithT(t), newCluster()
		m := NewManager(c, managed, c.logger())
		lead(t, m)
		m.SetHooks([]Hook{hook("a")})
		g.Expect(m.Publish(t.Context(), at("https://h/"))).To(gomega.Succeed())
		g.Expect(c.Delete(t.Context(), c.validating(g))).To(gomega.Succeed())
		time.Sleep(checkInterval + time.Second)
		synctest.Wait()
		g.Expect(c.validating(g).Webhooks).To(gomega.HaveLen(1))
		g.Expect(c.countLogged(deletedByOthers)).To(gomega.Equal(1), "%v", c.logged())
	})
}

func TestAppliedWebhooksAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := gomega.NewWithT(t), newCluster()
		m := NewManager(c, managed, c.logger())
		lead(t, m)
		m.SetHooks(nil)
		g.Expect(m.Publish(t.Context(), at("https://h/"))).To(gomega.Succeed())
		g.Expect(c.logged()).To(gomega.BeEmpty(), "there are no webhooks")
		m.SetHooks([]Hook{hook("a"), hook("b", func(h *Hook) { h.Validating = false })})
		synctest.Wait()
		time.Sleep(time.Hour)
		g.Expect(m.Cleanup(t.Context())).To(gomega.Succeed())
		g.Expect(c.logged()).To(gomega.HaveExactElements(
			gomega.ContainSubstring(`"The cluster calls the admission handlers." "configuration"="auto.kopf.dev" "validating"=1 "mutating"=1 "url"="https://h/"`),
			gomega.ContainSubstring("the configurations have no webhooks"),
		))
	})
}

// A failed write is retried without the delay of the contention.
func TestFailedRestoreIsRetriedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := gomega.NewWithT(t), newCluster()
		m := NewManager(c, managed, c.logger())
		lead(t, m)
		m.SetHooks([]Hook{hook("a")})
		g.Expect(m.Publish(t.Context(), at("https://h/"))).To(gomega.Succeed())
		g.Expect(c.Delete(t.Context(), c.validating(g))).To(gomega.Succeed())
		c.rejectWith(errors.New("no cluster"))
		time.Sleep(checkInterval)
		synctest.Wait()
		c.rejectWith(nil)
		time.Sleep(minRetryDelay)
		synctest.Wait()
		g.Expect(c.validating(g).Webhooks).To(gomega.HaveLen(1))
	})
}
