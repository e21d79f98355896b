package kube

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/shards"
)

// uidIn returns a uid in a shard of two.
func uidIn(shard int) types.UID {
	for i := 0; ; i++ {
		uid := types.UID(fmt.Sprintf("%d-%d", i*7919, i))
		if halves.Of("", uid) == shard {
			return uid
		}
	}
}

var halves = shards.Division{Number: 2}

func TestListsShowTheirShare(t *testing.T) {
	var wanted shards.Set
	share := &Share{Division: halves, Namespaced: true, Wanted: func() shards.Set { return wanted }}
	s := &server{response: fmt.Sprintf(`{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a","uid":%q}},{"metadata":{"name":"b","uid":%q}}]}`, uidIn(0), uidIn(1))}
	source := serve(t, s, kex).Source("", share, settings.Default().Watching, nil).ListWatch()
	lower := "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')"
	for i, step := range []struct {
		wanted  shards.Set
		options metav1.ListOptions
		names   string // of the objects
		query   string
	}{
		{shards.Set{}, metav1.ListOptions{}, "", "?fieldSelector=metadata.name=-"},
		{shards.SetOf(0), metav1.ListOptions{}, "a", "?shardSelector=" + lower},
		{shards.SetOf(1), metav1.ListOptions{Continue: "c"}, "a", "?continue=c&shardSelector=" + lower}, // of the list that has begun
		{shards.SetOf(0, 1), metav1.ListOptions{}, "a b", "?shardSelector=shardRange(object.metadata.uid, '0x0000000000000000', '0x10000000000000000')"},
	} {
		wanted = step.wanted
		found, err := source.ListWithContext(t.Context(), step.options)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, item := range found.(*List).Items {
			names = append(names, item.GetName())
		}
		if got := strings.Join(names, " "); got != step.names {
			t.Errorf("%d. the list shows %q, want %q", i+1, got, step.names)
		}
		if got := s.requests[len(s.requests)-1]; got != "GET /apis/kopf.dev/v1/kopfexamples"+step.query {
			t.Errorf("%d. got the request %s", i+1, got)
		}
	}
}

// A watch shows the shards of the list before it, and of the others only their versions.
func TestWatchesShowTheirShare(t *testing.T) {
	wanted := shards.SetOf(0)
	share := &Share{Division: halves, Namespaced: true, Wanted: func() shards.Set { return wanted }}
	own := strings.Replace(event("ADDED", "a", 0), `"metadata":{`, fmt.Sprintf(`"metadata":{"uid":%q,`, uidIn(0)), 1)
	foreign := strings.Replace(event("DELETED", "b", 0), `"metadata":{`, fmt.Sprintf(`"metadata":{"uid":%q,`, uidIn(1)), 1)
	s := &server{response: strings.Join([]string{own, foreign, event("BOOKMARK", "", 0)}, "\n") + "\n"}
	client := serve(t, s, kex)
	initial := true
	for _, options := range []metav1.ListOptions{
		{AllowWatchBookmarks: true, SendInitialEvents: &initial}, {AllowWatchBookmarks: true, ResourceVersion: "7"},
	} {
		w, err := client.Source("", share, settings.Default().Watching, nil).ListWatch().WatchWithContext(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for event := range w.ResultChan() {
			seen := event.Object.(*object.Snapshot)
			got = append(got, fmt.Sprintf("%s %q %s", event.Type, seen.GetName(), seen.GetResourceVersion()))
		}
		if want := []string{`ADDED "a" 7`, `BOOKMARK "" 7`, `BOOKMARK "" 7`}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if request := s.requests[len(s.requests)-1]; !strings.Contains(request, "0x8000000000000000") {
			t.Errorf("got the request %s", request)
		}
		wanted = shards.SetOf(1) // the next list shows it
	}
}

func TestWholeStreamsShowEverything(t *testing.T) {
	share := &Share{Division: halves, Whole: true, Wanted: func() shards.Set { return shards.SetOf(1) }}
	options := metav1.ListOptions{}
	share.Narrow(&options)
	if options != (metav1.ListOptions{}) || !share.Has("ns", uidIn(0)) || !share.hasText([]byte(`{"metadata":{"uid":"x"}}`)) || !share.Listed().Has(1) {
		t.Errorf("got %+v", options)
	}
}
