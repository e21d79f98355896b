package operator

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
)

func TestResourceMapKeepsGroupsThatCannotBeAsked(t *testing.T) {
	resource := func(group, plural string) selector.Resource {
		return selector.Resource{Group: group, Version: "v1", Plural: plural}
	}
	known := &resourceMap{}
	known.update(discovery.Snapshot{Resources: []selector.Resource{resource("a", "as"), resource("b", "bs"), resource("c", "cs")}})
	known.update(discovery.Snapshot{
		Resources: []selector.Resource{resource("a", "others")},
		Failed:    map[schema.GroupVersion]error{{Group: "b", Version: "v1"}: errors.New("it is down")},
	})
	for gvr, want := range map[schema.GroupVersionResource]bool{
		{Group: "a", Version: "v1", Resource: "as"}:     false,
		{Group: "a", Version: "v1", Resource: "others"}: true,
		{Group: "b", Version: "v1", Resource: "bs"}:     true,
		{Group: "c", Version: "v1", Resource: "cs"}:     false,
	} {
		if _, found := known.find(gvr); found != want {
			t.Errorf("%s: found %v", gvr, found)
		}
	}
	if all := known.all(); len(all) != 2 || all[0].Plural != "bs" || all[1].Plural != "others" {
		t.Errorf("got %v", all)
	}
}
