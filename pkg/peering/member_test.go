package peering

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/settings"
)

func prioritized(priority int) settings.Peering { return settings.Peering{Priority: priority} }

func TestTheHighestPriorityIsActive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, point := gomega.NewWithT(t), newMeetingPoint()
		low := join(t, point.locate, "low", prioritized(0))
		g.Expect(low.history()).To(gomega.Equal([]string{"active"}))
		high := join(t, point.locate, "high", prioritized(666))
		g.Expect(low.history()).To(gomega.Equal([]string{"active", "paused"}))
		g.Expect(high.history()).To(gomega.Equal([]string{"active"}))
		paused, why := low.State()
		g.Expect(paused).To(gomega.BeTrue())
		g.Expect(why).To(gomega.Equal(`ClusterKopfPeering "default" has operators of the higher priority: high`))

		after(time.Hour)
		g.Expect(low.history()).To(gomega.HaveLen(2), "signs of life must not change anything")
		high.stop()
		synctest.Wait()
		g.Expect(low.history()).To(gomega.Equal([]string{"active", "paused", "active"}))
		g.Expect(point.identities()).To(gomega.Equal([]string{"low"}))
		low.stop()
		g.Expect(point.identities()).To(gomega.BeEmpty())
	})
}

func TestAnOperatorThatComesLaterIsPausedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, point := gomega.NewWithT(t), newMeetingPoint()
		join(t, point.locate, "high", prioritized(1))
		low := join(t, point.locate, "low", prioritized(0))
		g.Expect(low.history()).To(gomega.Equal([]string{"paused"}), "it must not be active for a moment")
	})
}

func TestEqualPrioritiesPauseEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, point := gomega.NewWithT(t), newMeetingPoint()
		a := join(t, point.locate, "a", prioritized(5))
		b := join(t, point.locate, "b", prioritized(5))
		g.Expect(a.history()).To(gomega.Equal([]string{"active", "paused"}))
		g.Expect(b.history()).To(gomega.Equal([]string{"paused"}))
		g.Expect(a.lines()).To(gomega.ContainElement(gomega.And(
			gomega.ContainSubstring("several operators have the same priority"), gomega.ContainSubstring(`"peers"=["b"]`))))
		b.stop()
		synctest.Wait()
		g.Expect(a.history()).To(gomega.Equal([]string{"active", "paused", "active"}))
	})
}

func TestADeadPeerIsNoticedWithoutAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, point := gomega.NewWithT(t), newMeetingPoint()
		point.set("killed", entry(100, 10*time.Second))
		o := join(t, point.locate, "me", prioritized(0))
		after(10*time.Second - time.Millisecond)
		g.Expect(o.history()).To(gomega.Equal([]string{"paused"}))
		after(2 * time.Millisecond)
		g.Expect(o.history()).To(gomega.Equal([]string{"paused", "active"}))
		g.Expect(point.identities()).To(gomega.Equal([]string{"me"}), "the dead is removed")
	})
}

func TestWhoIsCutOffStaysPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, point := gomega.NewWithT(t), newMeetingPoint()
		point.set("other", entry(100, 10*time.Second))
		o := join(t, point.locate, "me", prioritized(0))
		point.fail(errors.New("no route to the server"))
		after(time.Hour)
		g.Expect(o.history()).To(gomega.Equal([]string{"paused"}), "the silence can be its own deafness")
		g.Expect(len(o.lines())).To(gomega.BeNumerically("<", 10), "it is not said again and again: %v", o.lines())
		point.fail(nil)
		after(10 * time.Second)
		g.Expect(o.history()).To(gomega.Equal([]string{"paused", "active"}))
	})
}

func TestSignsOfLifeAreFewAndInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, point := gomega.NewWithT(t), newMeetingPoint()
		join(t, point.locate, "me", prioritized(0))
		for range 3600 {
			after(time.Second)
			records := point.records()
			g.Expect(records["me"].IsDead(time.Now())).To(gomega.BeFalse())
			g.Expect(records["me"].Lifetime).To(gomega.Equal(time.Minute))
		}
		g.Expect(point.writes()).To(gomega.And(gomega.BeNumerically(">=", 66), gomega.BeNumerically("<=", 73)))
	})
}

func TestASignOfLifeThatFailedIsRepeatedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, point := gomega.NewWithT(t), newMeetingPoint()
		o := join(t, point.locate, "me", prioritized(0))
		after(49 * time.Second)
		point.fail(errors.New("busy"))
		after(7 * time.Second) // one attempt, or some, fail
		point.fail(nil)
		after(4 * time.Second)
		records := point.records()
		g.Expect(records["me"].IsDead(time.Now())).To(gomega.BeFalse())
		g.Expect(o.history()).To(gomega.Equal([]string{"active"}))
	})
}

func TestAnEntryThatWasRemovedComesBack(t *testing.T) {
	tests := map[string]func(p *meetingPoint){
		"removed": func(p *meetingPoint) { p.set("me", nil) },
		"dead":    func(p *meetingPoint) { p.set("me", entry(0, 0)) },
		"with all the object": func(p *meetingPoint) {
			p.remove()
			after(time.Second)
			p.change(func() { p.status = map[string]any{} })
		},
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, point := gomega.NewWithT(t), newMeetingPoint()
				join(t, point.locate, "me", prioritized(0))
				after(20 * time.Second)
				before := point.writes()
				spoil(point)
				synctest.Wait()
				records := point.records()
				g.Expect(records).To(gomega.HaveKey("me"))
				g.Expect(records["me"].IsDead(time.Now())).To(gomega.BeFalse())
				g.Expect(point.writes()).To(gomega.Equal(before + 1))
			})
		})
	}
}

func TestAnEntryThatIsNotKeptIsNoStormOfWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, point := gomega.NewWithT(t), newMeetingPoint()
		point.drops = true
		join(t, point.locate, "me", prioritized(0))
		after(10 * time.Minute)
		g.Expect(point.writes()).To(gomega.BeNumerically("<=", 1+10*60/5))
	})
}

func TestNobodyIsBuriedAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, point := gomega.NewWithT(t), newMeetingPoint()
		join(t, point.locate, "me", prioritized(0))
		point.meanwhile = func() { point.set("slow", entry(-1, time.Hour)) } // a sign of life, in the last moment
		point.set("slow", entry(-1, 0))
		synctest.Wait()
		g.Expect(point.meanwhile).To(gomega.BeNil())
		after(time.Minute)
		g.Expect(point.identities()).To(gomega.Equal([]string{"me", "slow"}))
	})
}

func TestBrokenEntriesAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, point := gomega.NewWithT(t), newMeetingPoint()
		point.set("text", "nonsense")
		point.set("odd", map[string]any{"priority": "much", "lastseen": "yesterday"})
		o := join(t, point.locate, "me", prioritized(0))
		after(time.Hour)
		g.Expect(o.history()).To(gomega.Equal([]string{"active"}))
		g.Expect(point.identities()).To(gomega.Equal([]string{"me", "odd", "text"}))
		complaints := 0
		for _, line := range o.lines() {
			if strings.Contains(line, "Some entries in the peering object are broken") {
				complaints++
			}
		}
		g.Expect(complaints).To(gomega.Equal(1))
	})
}

func TestAStuckWatchDoesNoHarmForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, point := gomega.NewWithT(t), newMeetingPoint()
		o := join(t, point.locate, "me", prioritized(0))
		point.change(func() { point.stuck = true })
		point.set("high", entry(1, time.Hour))
		after(time.Minute)
		g.Expect(o.history()).To(gomega.Equal([]string{"active", "paused"}))
	})
}

func TestWithoutAPeeringObject(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "kopfpeerings"}, "default", nil)
	undefined := &NotFoundError{Kind: "KopfPeering", Name: "default", NoResource: true}
	tests := map[string]struct {
		mandatory bool
		failure   error
		want      string
		said      string // empty: nothing that is worth a line at the usual level
	}{
		"there is no object":                     {false, nil, "active", ""},
		"there is no resource":                   {false, undefined, "active", ""},
		"it is forbidden to look":                {false, forbidden, "active", "With --standalone it does not try"},
		"there is no object, and one is needed":  {true, nil, "paused", "echo '{"},
		"there is no resource, and it is needed": {true, undefined, "paused", "install its definition"},
		"it is needed, and forbidden to look":    {true, forbidden, "paused", "get, list, watch, patch"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, point := gomega.NewWithT(t), newMeetingPoint()
				point.status, point.failure = nil, test.failure
				o := join(t, point.locate, "me", settings.Peering{Mandatory: test.mandatory})
				after(10 * time.Minute)
				g.Expect(o.history()).To(gomega.Equal([]string{test.want}))
				g.Expect(point.writes()).To(gomega.BeZero())
				if test.said == "" {
					g.Expect(o.lines()).To(gomega.HaveEach(gomega.HavePrefix(`"level"=1`)))
				} else {
					g.Expect(o.lines()).To(gomega.ConsistOf(gomega.ContainSubstring(test.said)))
				}

				point.change(func() { point.status, point.failure = map[string]any{}, nil })
				after(time.Minute)
				g.Expect(o.history()[len(o.history())-1]).To(gomega.Equal("active"))
				g.Expect(point.identities()).To(gomega.Equal([]string{"me"}), "the object is there now")
			})
		})
	}
}

func TestWhenThePeeringObjectGoesAway(t *testing.T) {
	tests := map[string]struct {
		mandatory bool
		want      []string
		said      string
	}{
		"the operator goes on alone":              {false, []string{"paused", "active"}, "goes on without regard to others"},
		"it does not, if the object is mandatory": {true, []string{"paused"}, "its mandatory peering object is missing"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, point := gomega.NewWithT(t), newMeetingPoint()
				point.set("high", entry(1, time.Hour))
				o := join(t, point.locate, "me", settings.Peering{Mandatory: test.mandatory})
				point.remove()
				after(2 * time.Hour)
				g.Expect(o.history()).To(gomega.Equal(test.want))
				g.Expect(o.lines()).To(gomega.ContainElement(gomega.ContainSubstring(test.said)))
			})
		})
	}
}

func TestStealthIsOnlyAboutTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, point := gomega.NewWithT(t), newMeetingPoint()
		o := join(t, point.locate, "me", settings.Peering{Stealth: true})
		after(time.Hour)
		g.Expect(point.writes()).To(gomega.BeNumerically(">", 60))
		g.Expect(o.lines()).To(gomega.BeEmpty())
		loud := join(t, point.locate, "you", settings.Peering{Priority: -1})
		g.Expect(loud.lines()).To(gomega.ContainElement(gomega.ContainSubstring("this one is alive")))
	})
}

func TestWhatIsOlderThanWhatWasSeenIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, point := gomega.NewWithT(t), newMeetingPoint()
		var told []Decision
		m := newMember(Target{Name: "default"}, Options{Identity: "me", Settings: settings.Default().Peering},
			point.locate, func(d Decision) { told = append(told, d) })
		m.place = point
		high := map[string]any{"me": entry(0, time.Minute), "high": entry(1, time.Minute)}
		point.change(func() { point.version = 98 })
		m.look(t.Context(), sight{status: high, version: "99"}) // and its own entry gets the version 100
		m.look(t.Context(), sight{status: high, version: "99"})
		m.look(t.Context(), sight{version: "99"})
		g.Expect(told).To(gomega.HaveLen(1), "the watch is behind the own write")
		m.look(t.Context(), sight{status: high, version: "101"})
		g.Expect(told).To(gomega.HaveLen(2))
		g.Expect(told[1].Paused).To(gomega.BeTrue())
	})
}
