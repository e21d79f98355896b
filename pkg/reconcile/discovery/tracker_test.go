package discovery_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
)

// update is one snapshot for a tracker, and the result.
type update struct {
	resources   []selector.Resource
	unavailable []string
	want        []string
	complete    bool
}

func TestTracker(t *testing.T) {
	pods, v1, v2 := resource("", "v1", "pods"), resource("kopf.dev", "v1", "kopfexamples"), resource("kopf.dev", "v2", "kopfexamples")
	both := []selector.Resource{pods, outdated(v1), v2}
	tests := map[string][]update{
		"existing resources are served": {
			{[]selector.Resource{pods, v1}, nil, []string{"pods.v1", "kopfexamples.v1.kopf.dev"}, true},
		},
		"a new resource is served at once": {
			{[]selector.Resource{pods}, nil, []string{"pods.v1"}, false},
			{[]selector.Resource{pods, v1}, nil, []string{"pods.v1", "kopfexamples.v1.kopf.dev"}, true},
		},
		"a missing resource is served until that is confirmed": {
			{[]selector.Resource{pods, v1}, nil, []string{"pods.v1", "kopfexamples.v1.kopf.dev"}, true},
			{[]selector.Resource{pods}, nil, []string{"kopfexamples.v1.kopf.dev", "pods.v1"}, false},
			{[]selector.Resource{pods}, nil, []string{"pods.v1"}, false},
		},
		"a resource that was missing once stays": {
			{[]selector.Resource{v1}, nil, []string{"kopfexamples.v1.kopf.dev"}, false},
			{nil, nil, []string{"kopfexamples.v1.kopf.dev"}, false},
			{[]selector.Resource{v1}, nil, []string{"kopfexamples.v1.kopf.dev"}, false},
			{nil, nil, []string{"kopfexamples.v1.kopf.dev"}, false},
		},
		"a version replaces another one, and both are never served": {
			{[]selector.Resource{pods, v1}, nil, []string{"pods.v1", "kopfexamples.v1.kopf.dev"}, true},
			{both, nil, []string{"kopfexamples.v1.kopf.dev", "pods.v1"}, false},
			{both, nil, []string{"pods.v1", "kopfexamples.v2.kopf.dev"}, true},
		},
		"resources of an unavailable group stay": {
			{[]selector.Resource{pods, v1}, nil, []string{"pods.v1", "kopfexamples.v1.kopf.dev"}, true},
			{[]selector.Resource{pods}, []string{"kopf.dev/v1"}, []string{"kopfexamples.v1.kopf.dev", "pods.v1"}, false},
			{[]selector.Resource{pods}, []string{"kopf.dev/v1"}, []string{"kopfexamples.v1.kopf.dev", "pods.v1"}, false},
			{[]selector.Resource{pods, v1}, nil, []string{"pods.v1", "kopfexamples.v1.kopf.dev"}, true},
		},
		"a resource is removed while another group is unavailable": {
			{[]selector.Resource{pods, v1}, nil, []string{"pods.v1", "kopfexamples.v1.kopf.dev"}, true},
			{[]selector.Resource{pods}, []string{"other.dev/v1"}, []string{"kopfexamples.v1.kopf.dev", "pods.v1"}, false},
			{[]selector.Resource{pods}, []string{"other.dev/v1"}, []string{"pods.v1"}, false},
		},
	}
	selectors := []selector.Selector{selector.New("v1", "pods"), selector.New("kopf.dev", "kopfexamples")}
	for name, updates := range tests {
		t.Run(name, func(t *testing.T) {
			var tracker discovery.Tracker
			for i, update := range updates {
				in := discovery.Snapshot{Resources: update.resources, Failed: cluster(update.unavailable...).Failed}
				served, complete := tracker.Update(discovery.Resolve(selectors, in), in)
				var got []string
				for _, s := range served {
					got = append(got, s.String())
				}
				if !slices.Equal(got, update.want) || complete != update.complete {
					t.Errorf("update %d: got %v, %v; want %v, %v", i, got, complete, update.want, update.complete)
				}
			}
		})
	}
}

func TestTrackerKeepsSelectorsOfUnavailableGroups(t *testing.T) {
	everything, named := selector.New(selector.Everything), selector.New("kopf.dev/v1", "kopfexamples")
	selectors := []selector.Selector{named, everything}
	in := discovery.Snapshot{Resources: []selector.Resource{resource("kopf.dev", "v1", "kopfexamples")}}
	var tracker discovery.Tracker
	for _, down := range [][]string{nil, {"kopf.dev/v2"}} {
		in.Failed = cluster(down...).Failed
		served, _ := tracker.Update(discovery.Resolve(selectors, in), in)
		if got := fmt.Sprint(served[0].Selectors); len(served) != 1 || got != "[kopf.dev/v1/kopfexamples *]" {
			t.Errorf("with %v unavailable: got %v by %s", down, served, got)
		}
	}
}

// The warning about an ambiguous selector says that none of its resources is served. That is so, also
// while an unrelated group is unavailable.
func TestAmbiguousSelectorDoesNotWaitForUnrelatedGroups(t *testing.T) {
	ours, others := resource("kopf.dev", "v1", "kopfexamples"), resource("example.com", "v1", "kopfexamples")
	selectors := []selector.Selector{selector.New("kopfexamples"), selector.New("kopf.dev", selector.Everything)}
	for by, named := range map[string][]selector.Selector{"the name": selectors[:1], "the name and the group": selectors} {
		t.Run(by, func(t *testing.T) {
			var tracker discovery.Tracker
			one := discovery.Snapshot{Resources: []selector.Resource{ours}}
			tracker.Update(discovery.Resolve(named, one), one)
			both := discovery.Snapshot{Resources: []selector.Resource{others, ours}, Failed: cluster("metrics.example.com/v1").Failed}
			tracker.Update(discovery.Resolve(named, both), both)
			served, _ := tracker.Update(discovery.Resolve(named, both), both)
			for _, s := range served {
				if slices.Contains(s.Selectors, selectors[0]) {
					t.Errorf("%v is served by %v", s, s.Selectors)
				}
			}
			if len(served) != len(named)-1 {
				t.Errorf("served are %v", served)
			}
		})
	}
}

// A selector without a group that has found its resource does not wait for other groups.
func TestFoundResourceIsServedWhileOtherGroupsAreUnavailable(t *testing.T) {
	in := discovery.Snapshot{Resources: []selector.Resource{resource("kopf.dev", "v1", "kopfexamples")}, Failed: cluster("metrics.example.com/v1").Failed}
	got := discovery.Resolve([]selector.Selector{selector.New("kopfexamples")}, in)
	if len(got.Resources) != 1 || len(got.Warnings) > 0 {
		t.Errorf("got %v, %v", got.Resources, got.Warnings)
	}
}
