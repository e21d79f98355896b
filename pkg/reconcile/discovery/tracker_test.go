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
