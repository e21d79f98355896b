package peering

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/settings"
)

// meetingPoints are the peering objects of some namespaces; others have none.
type meetingPoints map[string]*meetingPoint

func (p meetingPoints) locate(ctx context.Context, target Target) (place, error) {
	if point := p[target.Namespace]; point != nil {
		return point.locate(ctx, target)
	}
	return nil, target.absent(true)
}

func namespaced(namespaces ...string) func(*Options) {
	return func(o *Options) { o.Namespaced, o.Namespaces = true, namespaces }
}

func TestAStandaloneOperatorAsksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, point := gomega.NewWithT(t), newMeetingPoint()
		point.set("high", entry(1, time.Hour))
		o := join(t, point.locate, "me", settings.Peering{Standalone: true})
		after(time.Hour)
		g.Expect(o.history()).To(gomega.Equal([]string{"active"}))
		g.Expect(point.writes()).To(gomega.BeZero())
	})
}

func TestAnyNamespacePausesTheWholeOperator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, points := gomega.NewWithT(t), meetingPoints{"a": newMeetingPoint(), "b": newMeetingPoint()}
		o := join(t, points.locate, "me", settings.Peering{}, namespaced("a", "b", "without"))
		g.Expect(o.history()).To(gomega.Equal([]string{"active"}))
		points["b"].set("high", entry(1, time.Hour))
		synctest.Wait()
		g.Expect(o.history()).To(gomega.Equal([]string{"active", "paused"}))
		_, why := o.State()
		g.Expect(why).To(gomega.Equal(`KopfPeering "default" in the namespace "b" has operators of the higher priority: high`))
		points["a"].set("high", entry(1, time.Hour))
		synctest.Wait()
		points["b"].set("high", nil)
		synctest.Wait()
		g.Expect(o.history()).To(gomega.Equal([]string{"active", "paused"}))
		points["a"].set("high", nil)
		synctest.Wait()
		g.Expect(o.history()).To(gomega.Equal([]string{"active", "paused", "active"}))
	})
}

func TestAMandatoryPeeringIsNeededInEveryNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, points := gomega.NewWithT(t), meetingPoints{"a": newMeetingPoint()}
		o := join(t, points.locate, "me", settings.Peering{Name: "mine", Mandatory: true}, namespaced("a", "b"))
		g.Expect(o.history()).To(gomega.Equal([]string{"paused"}))
		_, why := o.State()
		g.Expect(why).To(gomega.Equal(`KopfPeering "mine" in the namespace "b" is missing`))
	})
}

func TestNothingIsToldBeforeAllIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, points := gomega.NewWithT(t), meetingPoints{"a": newMeetingPoint(), "b": newMeetingPoint()}
		points["b"].fail(errors.New("down"))
		o := join(t, points.locate, "me", settings.Peering{}, namespaced("a", "b"))
		after(time.Hour)
		g.Expect(o.history()).To(gomega.BeEmpty())
		paused, why := o.State()
		g.Expect(paused).To(gomega.BeTrue())
		g.Expect(why).To(gomega.Equal("the peering is not known yet"))
		points["b"].fail(nil)
		after(10 * time.Second)
		g.Expect(o.history()).To(gomega.Equal([]string{"active"}))
	})
}

func TestNamespacesComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, points := gomega.NewWithT(t), meetingPoints{"a": newMeetingPoint(), "b": newMeetingPoint()}
		o := join(t, points.locate, "me", settings.Peering{}, namespaced())
		g.Expect(o.history()).To(gomega.Equal([]string{"active"}), "there is nobody to ask")
		points["b"].set("high", entry(1, time.Hour))
		o.SetNamespaces([]string{"a", "b"})
		synctest.Wait()
		g.Expect(o.history()).To(gomega.Equal([]string{"active", "paused"}))
		o.SetNamespaces([]string{"a"})
		synctest.Wait()
		g.Expect(o.history()).To(gomega.Equal([]string{"active", "paused", "active"}))
		g.Expect(points["a"].identities()).To(gomega.Equal([]string{"me"}))
		g.Expect(points["b"].identities()).To(gomega.Equal([]string{"high"}))
		o.stop()
		g.Expect(points["a"].identities()).To(gomega.BeEmpty())
		o.SetNamespaces([]string{"b"})
		synctest.Wait()
		g.Expect(points["b"].identities()).To(gomega.Equal([]string{"high"}), "it runs no more")
	})
}

func TestANewNamespaceWithoutAMandatoryPeeringPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, points := gomega.NewWithT(t), meetingPoints{"a": newMeetingPoint()}
		o := join(t, points.locate, "me", settings.Peering{Mandatory: true}, namespaced("a"))
		o.SetNamespaces([]string{"a", "b"})
		synctest.Wait()
		g.Expect(o.history()).To(gomega.Equal([]string{"active", "paused"}))
	})
}

func TestTheEntryIsThereUntilTheWorkIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, point := gomega.NewWithT(t), newMeetingPoint()
		p := newPeering(point.locate, Options{Identity: "me", Notify: func(bool) {}})
		ctx, cancel := context.WithCancel(t.Context())
		failure := errors.New("of the work")
		err := p.RunDuring(ctx, func(ctx context.Context) error {
			synctest.Wait()
			cancel()
			<-ctx.Done()
			after(time.Minute) // a handler that takes its time
			g.Expect(point.identities()).To(gomega.Equal([]string{"me"}))
			return failure
		})
		g.Expect(err).To(gomega.MatchError(failure))
		g.Expect(point.identities()).To(gomega.BeEmpty())
	})
}

func TestTheOthersKnowOfAnOperatorBeforeItBeginsToWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, point := gomega.NewWithT(t), newMeetingPoint()
		var known []string
		join(t, point.locate, "me", settings.Peering{}, func(o *Options) {
			o.Notify = func(bool) { known = point.identities() }
		})
		g.Expect(known).To(gomega.Equal([]string{"me"}))
	})
}

func TestLeavingTakesSomeSecondsAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, point := gomega.NewWithT(t), newMeetingPoint()
		o := join(t, point.locate, "me", settings.Peering{})
		point.fail(errors.New("down"))
		begun := time.Now()
		o.stop()
		g.Expect(time.Since(begun)).To(gomega.BeNumerically("<=", leavePatience+leavePause))
		g.Expect(o.lines()).To(gomega.ContainElement(gomega.ContainSubstring("until its entry expires")))
	})
}

func TestLeavingIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, point := gomega.NewWithT(t), newMeetingPoint()
		o := join(t, point.locate, "me", settings.Peering{})
		point.fail(errors.New("busy"))
		var healing sync.WaitGroup
		healing.Go(func() {
			time.Sleep(time.Second)
			point.fail(nil)
		})
		o.stop()
		healing.Wait()
		g.Expect(point.identities()).To(gomega.BeEmpty())
	})
}

func TestAnIdentityIsMadeWhereNoneIsGiven(t *testing.T) {
	point := newMeetingPoint()
	if a, b := newPeering(point.locate, Options{}), newPeering(point.locate, Options{}); a.Identity() == "" || a.Identity() == b.Identity() {
		t.Errorf("got %q and %q", a.Identity(), b.Identity())
	}
}
