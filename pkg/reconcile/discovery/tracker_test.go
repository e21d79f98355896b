package discovery_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
)

// look is one snapshot for a tracker, and what it says to it.
type look struct {
	resources []selector.Resource
	down      []string
	want      []string
	settled   bool
}

func TestTracker(t *testing.T) {
	pods, v1, v2 := resource("", "v1", "pods"), resource("kopf.dev", "v1", "kopfexamples"), resource("kopf.dev", "v2", "kopfexamples")
	both := []selector.Resource{pods, outdated(v1), v2}
	tests := map[string][]look{
		"what is there is served": {
			{[]selector.Resource{pods, v1}, nil, []string{"pods.v1", "kopfexamples.v1.kopf.dev"}, true},
		},
		"what appears is served at once": {
			{[]selector.Resource{pods}, nil, []string{"pods.v1"}, false},
			{[]selector.Resource{pods, v1}, nil, []string{"pods.v1", "kopfexamples.v1.kopf.dev"}, true},
		},
		"what disappears is served until that is confirmed": {
			{[]selector.Resource{pods, v1}, nil, []string{"pods.v1", "kopfexamples.v1.kopf.dev"}, true},
			{[]selector.Resource{pods}, nil, []string{"kopfexamples.v1.kopf.dev", "pods.v1"}, false},
			{[]selector.Resource{pods}, nil, []string{"pods.v1"}, false},
		},
		"what was only missed goes on": {
			{[]selector.Resource{v1}, nil, []string{"kopfexamples.v1.kopf.dev"}, false},
			{nil, nil, []string{"kopfexamples.v1.kopf.dev"}, false},
			{[]selector.Resource{v1}, nil, []string{"kopfexamples.v1.kopf.dev"}, false},
			{nil, nil, []string{"kopfexamples.v1.kopf.dev"}, false},
		},
		"a version gives way to another one, and never are both served": {
			{[]selector.Resource{pods, v1}, nil, []string{"pods.v1", "kopfexamples.v1.kopf.dev"}, true},
			{both, nil, []string{"kopfexamples.v1.kopf.dev", "pods.v1"}, false},
			{both, nil, []string{"pods.v1", "kopfexamples.v2.kopf.dev"}, true},
		},
		"what is in the dark goes on": {
			{[]selector.Resource{pods, v1}, nil, []string{"pods.v1", "kopfexamples.v1.kopf.dev"}, true},
			{[]selector.Resource{pods}, []string{"kopf.dev/v1"}, []string{"kopfexamples.v1.kopf.dev", "pods.v1"}, false},
			{[]selector.Resource{pods}, []string{"kopf.dev/v1"}, []string{"kopfexamples.v1.kopf.dev", "pods.v1"}, false},
			{[]selector.Resource{pods, v1}, nil, []string{"pods.v1", "kopfexamples.v1.kopf.dev"}, true},
		},
		"what is removed while others are in the dark is removed": {
			{[]selector.Resource{pods, v1}, nil, []string{"pods.v1", "kopfexamples.v1.kopf.dev"}, true},
			{[]selector.Resource{pods}, []string{"other.dev/v1"}, []string{"kopfexamples.v1.kopf.dev", "pods.v1"}, false},
			{[]selector.Resource{pods}, []string{"other.dev/v1"}, []string{"pods.v1"}, false},
		},
	}
	selectors := []selector.Selector{selector.New("v1", "pods"), selector.New("kopf.dev", "kopfexamples")}
	for name, looks := range tests {
		t.Run(name, func(t *testing.T) {
			var tracker discovery.Tracker
			for i, look := range looks {
				in := discovery.Snapshot{Resources: look.resources, Failed: cluster(look.down...).Failed}
				served, settled := tracker.Update(discovery.Resolve(selectors, in), in)
				var got []string
				for _, s := range served {
					got = append(got, s.String())
				}
				if !slices.Equal(got, look.want) || settled != look.settled {
					t.Errorf("look %d: got %v, %v; want %v, %v", i, got, settled, look.want, look.settled)
				}
			}
		})
	}
}

func TestTrackerKeepsSelectorsThatCannotFindAnythingForNow(t *testing.T) {
	everything, named := selector.New(selector.Everything), selector.New("kopf.dev/v1", "kopfexamples")
	selectors := []selector.Selector{named, everything}
	in := discovery.Snapshot{Resources: []selector.Resource{resource("kopf.dev", "v1", "kopfexamples")}}
	var tracker discovery.Tracker
	for _, down := range [][]string{nil, {"kopf.dev/v2"}} {
		in.Failed = cluster(down...).Failed
		served, _ := tracker.Update(discovery.Resolve(selectors, in), in)
		if got := fmt.Sprint(served[0].Selectors); len(served) != 1 || got != "[kopf.dev/v1/kopfexamples *]" {
			t.Errorf("with %v down: got %v by %s", down, served, got)
		}
	}
}
