package peering

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/settings"
)

// fakeGroups are peering objects by API group; other groups do not have the resource.
type fakeGroups struct {
	objects map[string]*fakeObject
	mu      sync.Mutex
	finds   map[string]int
}

func newFakeGroups() *fakeGroups {
	return &fakeGroups{objects: map[string]*fakeObject{group: newFakeObject(), oldGroup: newFakeObject()}, finds: map[string]int{}}
}

func (p *fakeGroups) find(ctx context.Context, target Target, in string) (peeringAPI, error) {
	p.mu.Lock()
	p.finds[in]++
	p.mu.Unlock()
	if object := p.objects[in]; object != nil {
		return object.find(ctx, target, group)
	}
	return nil, target.notFound(in, true)
}

func TestOperatorTakesPartInBothGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, both := gomega.NewWithT(t), newFakeGroups()
		first, second := both.objects[group], both.objects[oldGroup]
		o := runPeering(t, both.find, "me", settings.Peering{Mandatory: true})
		g.Expect(o.history()).To(gomega.Equal([]string{"active"}))
		advance(time.Hour)
		for _, object := range both.objects {
			records := object.records()
			g.Expect(records).To(gomega.HaveKey("me"))
			g.Expect(records["me"].IsDead(time.Now())).To(gomega.BeFalse())
		}
		second.set("high", entry(1, time.Hour))
		synctest.Wait()
		g.Expect(o.history()).To(gomega.Equal([]string{"active", "paused"}))
		first.set("high", entry(1, time.Hour))
		synctest.Wait()
		_, why := o.State()
		g.Expect(why).To(gomega.HaveSuffix("higher priority: high"), "it is one operator")
		second.set("high", nil)
		synctest.Wait()
		g.Expect(o.history()).To(gomega.HaveLen(2), "it is still in the other group")
		first.set("high", nil)
		synctest.Wait()
		g.Expect(o.history()).To(gomega.Equal([]string{"active", "paused", "active"}))
		o.stop()
		g.Expect(append(first.identities(), second.identities()...)).To(gomega.BeEmpty())
	})
}

func TestOneObjectIsEnoughForAMandatoryPeering(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: oldGroup, Resource: "kopfpeerings"}, "default", nil)
	tests := map[string]struct {
		lose   func(*fakeGroups)
		logged int
	}{
		"no object":   {func(both *fakeGroups) { both.objects[oldGroup].status = nil }, 0},
		"no resource": {func(both *fakeGroups) { both.objects[oldGroup] = nil }, 0},
		"forbidden":   {func(both *fakeGroups) { both.objects[oldGroup].failure = forbidden }, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, both := gomega.NewWithT(t), newFakeGroups()
				test.lose(both)
				o := runPeering(t, both.find, "me", settings.Peering{Mandatory: true, Stealth: true})
				advance(time.Hour)
				g.Expect(o.history()).To(gomega.Equal([]string{"active"}))
				g.Expect(o.lines()).To(gomega.HaveLen(test.logged), "%v", o.lines())
				g.Expect(strings.Join(o.lines(), "")).NotTo(gomega.ContainSubstring("paused"))
				g.Expect(both.finds[oldGroup]).To(gomega.BeNumerically("<=", 62), "it is looked for once per lifetime")

				both.objects[group].remove()
				synctest.Wait()
				g.Expect(o.history()).To(gomega.Equal([]string{"active", "paused"}))
				both.objects[group].change(func() { both.objects[group].status = map[string]any{} })
				synctest.Wait()
				g.Expect(o.history()).To(gomega.Equal([]string{"active", "paused", "active"}))
			})
		})
	}
}

func TestThereIsNoNotificationBeforeBothGroupsAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, both := gomega.NewWithT(t), newFakeGroups()
		both.objects[oldGroup].fail(errors.New("down"))
		o := runPeering(t, both.find, "me", settings.Peering{})
		advance(time.Hour)
		g.Expect(o.history()).To(gomega.BeEmpty())
		both.objects[oldGroup].set("high", entry(1, time.Hour))
		both.objects[oldGroup].fail(nil)
		advance(10 * time.Second)
		g.Expect(o.history()).To(gomega.Equal([]string{"paused"}))
	})
}

func TestReasonsOfBothGroupsAreCombined(t *testing.T) {
	higher := func(peers ...string) Decision {
		return Decision{Paused: true, Reason: ReasonHigherPriority, Peers: peers}
	}
	same := func(peers ...string) Decision {
		return Decision{Paused: true, Reason: ReasonSamePriority, Peers: peers}
	}
	tests := map[string]struct{ one, other, want Decision }{
		"none":            {Decision{Dead: []string{"a"}}, Decision{}, Decision{}},
		"one":             {same("a"), Decision{}, same("a")},
		"same reason":     {higher("b", "c"), higher("a", "c"), higher("a", "b", "c")},
		"another reason":  {same("a"), higher("b"), higher("b")},
		"the same pauses": {same("b"), same("a"), same("a", "b")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			g.Expect(combine([]Decision{test.one, test.other})).To(gomega.Equal(test.want))
			g.Expect(combine([]Decision{test.other, test.one})).To(gomega.Equal(test.want))
		})
	}
}

func TestMissingObjectIsReportedByTheGroupThatCouldHaveIt(t *testing.T) {
	target := Target{Name: "mine"}
	noResource, noObject := target.notFound(group, true), target.notFound(oldGroup, false)
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "mine", nil)
	tests := map[string]struct {
		missing []error
		want    error
	}{
		"no resource":             {[]error{noResource, target.notFound(oldGroup, true)}, noResource},
		"a resource in one group": {[]error{noResource, noObject}, noObject},
		"forbidden in one group":  {[]error{noObject, forbidden}, forbidden},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := chooseMissing(test.missing); got.Error() != test.want.Error() {
				t.Errorf("got %v", got)
			}
		})
	}
}
