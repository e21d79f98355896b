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

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/settings"
)

func prioritized(priority int) settings.Peering { return settings.Peering{Priority: priority} }

func TestHighestPriorityIsActive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, object := gomega.NewWithT(t), newFakeObject()
		low := runPeering(t, object.find, "low", prioritized(0))
		g.Expect(low.history()).To(gomega.Equal([]string{"active"}))
		high := runPeering(t, object.find, "high", prioritized(666))
		g.Expect(low.history()).To(gomega.Equal([]string{"active", "paused"}))
		g.Expect(high.history()).To(gomega.Equal([]string{"active"}))
		paused, why := low.State()
		g.Expect(paused).To(gomega.BeTrue())
		g.Expect(why).To(gomega.Equal(`ClusterKopfPeering "default" has operators of the higher priority: high`))

		advance(time.Hour)
		g.Expect(low.history()).To(gomega.HaveLen(2), "renewals must not cause notifications")
		high.stop()
		synctest.Wait()
		g.Expect(low.history()).To(gomega.Equal([]string{"active", "paused", "active"}))
		g.Expect(object.identities()).To(gomega.Equal([]string{"low"}))
		low.stop()
		g.Expect(object.identities()).To(gomega.BeEmpty())
	})
}

func TestNewOperatorOfLowerPriorityIsNeverActive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, object := gomega.NewWithT(t), newFakeObject()
		runPeering(t, object.find, "high", prioritized(1))
		low := runPeering(t, object.find, "low", prioritized(0))
		g.Expect(low.history()).To(gomega.Equal([]string{"paused"}), "the operator must not be active for a moment")
	})
}

func TestEqualPrioritiesPauseAllOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, object := gomega.NewWithT(t), newFakeObject()
		a := runPeering(t, object.find, "a", prioritized(5))
		b := runPeering(t, object.find, "b", prioritized(5))
		g.Expect(a.history()).To(gomega.Equal([]string{"active", "paused"}))
		g.Expect(b.history()).To(gomega.Equal([]string{"paused"}))
		g.Expect(a.lines()).To(gomega.ContainElement(gomega.And(
			gomega.ContainSubstring("several operators have the same priority"), gomega.ContainSubstring(`"peers"=["b"]`))))
		b.stop()
		synctest.Wait()
		g.Expect(a.history()).To(gomega.Equal([]string{"active", "paused", "active"}))
	})
}

func TestLogNamesEntriesThatNeverExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, object := gomega.NewWithT(t), newFakeObject()
		object.set("manual", map[string]any{"priority": int64(9)})
		o := runPeering(t, object.find, "a", prioritized(5))
		g.Expect(o.lines()).To(gomega.ContainElement(gomega.And(gomega.ContainSubstring("The operator is paused"),
			gomega.ContainSubstring(`"neverExpire"=["manual"]`), gomega.ContainSubstring("set them to null"))))
	})
}

func TestOperatorResumesWhenAPeerExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, object := gomega.NewWithT(t), newFakeObject()
		object.set("killed", entry(100, 10*time.Second))
		o := runPeering(t, object.find, "me", prioritized(0))
		advance(10*time.Second - time.Millisecond)
		g.Expect(o.history()).To(gomega.Equal([]string{"paused"}))
		advance(2 * time.Millisecond)
		g.Expect(o.history()).To(gomega.Equal([]string{"paused", "active"}))
		g.Expect(object.identities()).To(gomega.Equal([]string{"me"}), "the dead entry must be removed")
	})
}

func TestOperatorWithoutConnectionStaysPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, object := gomega.NewWithT(t), newFakeObject()
		object.set("other", entry(100, 10*time.Second))
		o := runPeering(t, object.find, "me", prioritized(0))
		object.fail(errors.New("no route to the server"))
		advance(time.Hour)
		g.Expect(o.history()).To(gomega.Equal([]string{"paused"}), "the peer may be alive")
		g.Expect(len(o.lines())).To(gomega.BeNumerically("<", 10), "the log must not repeat itself: %v", o.lines())
		object.fail(nil)
		advance(10 * time.Second)
		g.Expect(o.history()).To(gomega.Equal([]string{"paused", "active"}))
	})
}

func TestEntriesAreRenewedInTimeAndRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, object := gomega.NewWithT(t), newFakeObject()
		runPeering(t, object.find, "me", prioritized(0))
		for range 3600 {
			advance(time.Second)
			records := object.records()
			g.Expect(records["me"].IsDead(time.Now())).To(gomega.BeFalse())
			g.Expect(records["me"].Lifetime).To(gomega.Equal(time.Minute))
		}
		g.Expect(object.writes()).To(gomega.And(gomega.BeNumerically(">=", 66), gomega.BeNumerically("<=", 73)))
	})
}

func TestFailedRenewalIsRetriedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, object := gomega.NewWithT(t), newFakeObject()
		o := runPeering(t, object.find, "me", prioritized(0))
		advance(49 * time.Second)
		object.fail(errors.New("busy"))
		advance(7 * time.Second) // at least one attempt fails
		object.fail(nil)
		advance(4 * time.Second)
		records := object.records()
		g.Expect(records["me"].IsDead(time.Now())).To(gomega.BeFalse())
		g.Expect(o.history()).To(gomega.Equal([]string{"active"}))
	})
}

func TestLostEntryIsWrittenAgain(t *testing.T) {
	tests := map[string]func(p *fakeObject){
		"entry removed": func(p *fakeObject) { p.set("me", nil) },
		"entry expired": func(p *fakeObject) { p.set("me", entry(0, 0)) },
		"object recreated": func(p *fakeObject) {
			p.remove()
			advance(time.Second)
			p.change(func() { p.status = map[string]any{} })
		},
	}
	for name, lose := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, object := gomega.NewWithT(t), newFakeObject()
				runPeering(t, object.find, "me", prioritized(0))
				advance(20 * time.Second)
				before := object.writes()
				lose(object)
				synctest.Wait()
				records := object.records()
				g.Expect(records).To(gomega.HaveKey("me"))
				g.Expect(records["me"].IsDead(time.Now())).To(gomega.BeFalse())
				g.Expect(object.writes()).To(gomega.Equal(before + 1))
			})
		})
	}
}

func TestDroppedEntryIsNotWrittenAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, object := gomega.NewWithT(t), newFakeObject()
		object.dropsEntries = true
		runPeering(t, object.find, "me", prioritized(0))
		advance(10 * time.Minute)
		g.Expect(object.writes()).To(gomega.BeNumerically("<=", 1+10*60/5))
	})
}

func TestRenewedEntryIsNotPruned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, object := gomega.NewWithT(t), newFakeObject()
		runPeering(t, object.find, "me", prioritized(0))
		object.beforePrune = func() { object.set("slow", entry(-1, time.Hour)) } // renewed at the last moment
		object.set("slow", entry(-1, 0))
		synctest.Wait()
		g.Expect(object.beforePrune).To(gomega.BeNil())
		advance(time.Minute)
		g.Expect(object.identities()).To(gomega.Equal([]string{"me", "slow"}))
	})
}

func TestInvalidEntriesAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, object := gomega.NewWithT(t), newFakeObject()
		object.set("text", "nonsense")
		object.set("odd", map[string]any{"priority": "much", "lastseen": "yesterday"})
		o := runPeering(t, object.find, "me", prioritized(0))
		advance(time.Hour)
		g.Expect(o.history()).To(gomega.Equal([]string{"active"}))
		g.Expect(object.identities()).To(gomega.Equal([]string{"me", "odd", "text"}))
		reports := 0
		for _, line := range o.lines() {
			if strings.Contains(line, "Some entries of the peering object are invalid") {
				reports++
			}
		}
		g.Expect(reports).To(gomega.Equal(1))
	})
}

func TestStuckWatchIsNoticedByTheNextRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, object := gomega.NewWithT(t), newFakeObject()
		o := runPeering(t, object.find, "me", prioritized(0))
		object.change(func() { object.stalled = true })
		object.set("high", entry(1, time.Hour))
		advance(time.Minute)
		g.Expect(o.history()).To(gomega.Equal([]string{"active", "paused"}))
	})
}

func TestWithoutAPeeringObject(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "kopfpeerings"}, "default", nil)
	noResource := &NotFoundError{Group: group, Kind: "KopfPeering", Name: "default", NoResource: true}
	tests := map[string]struct {
		mandatory bool
		failure   error
		want      string
		logged    string // empty: only debug lines
	}{
		"no object":              {false, nil, "active", ""},
		"no resource":            {false, noResource, "active", ""},
		"forbidden":              {false, forbidden, "active", "With --standalone it does not try"},
		"no object, mandatory":   {true, nil, "paused", "echo '{"},
		"no resource, mandatory": {true, noResource, "paused", "install the definitions of peering"},
		"forbidden, mandatory":   {true, forbidden, "paused", "get, list, watch, patch"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, object := gomega.NewWithT(t), newFakeObject()
				object.status, object.failure = nil, test.failure
				o := runPeering(t, object.find, "me", settings.Peering{Mandatory: test.mandatory})
				advance(10 * time.Minute)
				g.Expect(o.history()).To(gomega.Equal([]string{test.want}))
				g.Expect(object.writes()).To(gomega.BeZero())
				if test.logged == "" {
					g.Expect(o.lines()).To(gomega.HaveEach(gomega.HavePrefix(`"level"=1`)))
				} else {
					g.Expect(o.lines()).To(gomega.ConsistOf(gomega.ContainSubstring(test.logged)))
				}

				object.change(func() { object.status, object.failure = map[string]any{}, nil })
				advance(time.Minute)
				g.Expect(o.history()[len(o.history())-1]).To(gomega.Equal("active"))
				g.Expect(object.identities()).To(gomega.Equal([]string{"me"}), "the object exists now")
			})
		})
	}
}

// The operator discovers the resource: it need not look for it regularly.
func TestResourceThatAppearsIsUsedAtOnce(t *testing.T) {
	of := func(group, version, plural string) []selector.Resource {
		return []selector.Resource{{Version: "v1", Plural: "pods"}, {Group: group, Version: version, Plural: plural}}
	}
	for name, test := range map[string]struct {
		failure    error // before
		discovered []selector.Resource
		joins      bool
	}{
		"the resource":        {&NotFoundError{NoResource: true}, of(group, version, "clusterkopfpeerings"), true},
		"another scope":       {&NotFoundError{NoResource: true}, of(group, version, "kopfpeerings"), false},
		"another version":     {&NotFoundError{NoResource: true}, of(group, "v2", "clusterkopfpeerings"), false},
		"another group":       {&NotFoundError{NoResource: true}, of(oldGroup, version, "clusterkopfpeerings"), false},
		"nothing":             {&NotFoundError{NoResource: true}, nil, false},
		"without permissions": {apierrors.NewForbidden(schema.GroupResource{}, "default", nil), of(group, version, "clusterkopfpeerings"), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, object := gomega.NewWithT(t), newFakeObject()
				object.failure = test.failure
				o := runPeering(t, object.find, "me", settings.Peering{})
				object.change(func() { object.failure = nil })
				o.Discovered(test.discovered)
				synctest.Wait()
				g.Expect(len(object.identities()) > 0).To(gomega.Equal(test.joins))
			})
		})
	}
}

func TestRemovalOfThePeeringObject(t *testing.T) {
	tests := map[string]struct {
		mandatory bool
		want      []string
		logged    string
	}{
		"optional":  {false, []string{"paused", "active"}, "continues and ignores other operators"},
		"mandatory": {true, []string{"paused"}, "its mandatory peering object is missing"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, object := gomega.NewWithT(t), newFakeObject()
				object.set("high", entry(1, time.Hour))
				o := runPeering(t, object.find, "me", settings.Peering{Mandatory: test.mandatory})
				object.remove()
				advance(2 * time.Hour)
				g.Expect(o.history()).To(gomega.Equal(test.want))
				g.Expect(o.lines()).To(gomega.ContainElement(gomega.ContainSubstring(test.logged)))
			})
		})
	}
}

func TestStealthAffectsOnlyTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, object := gomega.NewWithT(t), newFakeObject()
		o := runPeering(t, object.find, "me", settings.Peering{Stealth: true})
		advance(time.Hour)
		g.Expect(object.writes()).To(gomega.BeNumerically(">", 60))
		g.Expect(o.lines()).To(gomega.BeEmpty())
		loud := runPeering(t, object.find, "you", settings.Peering{Priority: -1})
		g.Expect(loud.lines()).To(gomega.ContainElement(gomega.ContainSubstring("The entry in the peering is renewed.")))
	})
}

func TestOutdatedStatesAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, object := gomega.NewWithT(t), newFakeObject()
		var decisions []Decision
		m := newMember(Target{Name: "default"}, group, Options{Identity: "me", Settings: settings.Default().Peering}, object.find)
		m.show = func(v view) { decisions = append(decisions, v.decision) }
		m.api = object
		high := map[string]any{"me": entry(0, time.Minute), "high": entry(1, time.Minute)}
		object.change(func() { object.version = 98 })
		m.handleState(t.Context(), peeringState{status: high, version: "99"}) // its own entry gets the version 100
		m.handleState(t.Context(), peeringState{status: high, version: "99"})
		m.handleState(t.Context(), peeringState{version: "99"})
		g.Expect(decisions).To(gomega.HaveLen(1), "the watch is behind the write")
		m.handleState(t.Context(), peeringState{status: high, version: "101"})
		g.Expect(decisions).To(gomega.HaveLen(2))
		g.Expect(decisions[1].Paused).To(gomega.BeTrue())
	})
}
