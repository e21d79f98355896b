package selector_test

import (
	"slices"

	"github.com/kopf-go/kopf/pkg/model/selector"
)

var (
	pods       = selector.Resource{Version: "v1", Plural: "pods", Singular: "pod", Kind: "Pod", ShortNames: []string{"po"}, Categories: []string{"all"}, Namespaced: true, Preferred: true}
	events     = selector.Resource{Version: "v1", Plural: "events", Kind: "Event", ShortNames: []string{"ev"}, Categories: []string{"all"}, Namespaced: true, Preferred: true}
	newEvents  = selector.Resource{Group: "events.k8s.io", Version: "v1", Plural: "events", Kind: "Event", ShortNames: []string{"ev"}, Namespaced: true, Preferred: true}
	podMetrics = selector.Resource{Group: "metrics.k8s.io", Version: "v1beta1", Plural: "pods", Kind: "PodMetrics", Namespaced: true, Preferred: true}
	kex        = selector.Resource{Group: "kopf.dev", Version: "v1", Plural: "kopfexamples", Singular: "kopfexample", Kind: "KopfExample", ShortNames: []string{"kex"}, Categories: []string{"all"}, Namespaced: true, Preferred: true}
	oldKex     = selector.Resource{Group: "kopf.dev", Version: "v1beta1", Plural: "kopfexamples", Singular: "kopfexample", Kind: "KopfExample", ShortNames: []string{"kex"}, Namespaced: true}
	otherKex   = selector.Resource{Group: "example.com", Version: "v1", Plural: "kopfexamples", Singular: "kopfexample", Kind: "KopfExample", Namespaced: true, Preferred: true}

	cluster = []selector.Resource{pods, events, newEvents, podMetrics, kex, oldKex, otherKex}
)

// without returns the cluster without some groups.
func without(groups ...string) []selector.Resource {
	return slices.DeleteFunc(slices.Clone(cluster), func(r selector.Resource) bool { return slices.Contains(groups, r.Group) })
}

func names(resources []selector.Resource) []string {
	list := []string{}
	for _, r := range resources {
		list = append(list, r.String())
	}
	return list
}
