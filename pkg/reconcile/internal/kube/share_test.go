package kube

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"
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

// A watch shows the shards of the list before it that are still wanted, and of the others only the versions.
func TestWatchesShowTheirShare(t *testing.T) {
	var wanted shards.Set
	share := &Share{Division: halves, Namespaced: true, Wanted: func() shards.Set { return wanted }}
	mine := strings.Replace(event("ADDED", "a", 0), `"metadata":{`, fmt.Sprintf(`"metadata":{"uid":%q,`, uidIn(0)), 1)
	foreign := strings.Replace(event("DELETED", "b", 0), `"metadata":{`, fmt.Sprintf(`"metadata":{"uid":%q,`, uidIn(1)), 1)
	s := &server{response: strings.Join([]string{mine, foreign, event("BOOKMARK", "", 0)}, "\n") + "\n"}
	client := serve(t, s, kex)
	left := 0
	share.Left = func() { left++ }
	initial := true
	own, others := `ADDED "a" 7`, `BOOKMARK "" 7`
	for i, step := range []struct {
		wanted  shards.Set
		options metav1.ListOptions
		shows   []string
		query   string
		left    int
	}{
		{shards.SetOf(0), metav1.ListOptions{SendInitialEvents: &initial}, []string{own, others, others}, "0x8000000000000000", 0},
		{shards.SetOf(0, 1), metav1.ListOptions{ResourceVersion: "7"}, []string{own, others, others}, "0x8000000000000000", 0}, // without a list
		{shards.SetOf(1), metav1.ListOptions{ResourceVersion: "7"}, []string{others, others}, "metadata.name=-", 1},            // one for both of others
	} {
		wanted = step.wanted
		step.options.AllowWatchBookmarks = true
		w, err := client.Source("", share, settings.Default().Watching, nil).ListWatch().WatchWithContext(t.Context(), step.options)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for event := range w.ResultChan() {
			seen := event.Object.(*object.Snapshot)
			got = append(got, fmt.Sprintf("%s %q %s", event.Type, seen.GetName(), seen.GetResourceVersion()))
		}
		if !slices.Equal(got, step.shows) || left != step.left {
			t.Errorf("%d. got %q, want %q; left %d times", i+1, got, step.shows, left)
		}
		if request := s.requests[len(s.requests)-1]; !strings.Contains(request, step.query) {
			t.Errorf("%d. got the request %s", i+1, request)
		}
	}
}

// Whether the API server knows the selector, only the objects show that it sends: the first objects of a watch are no list.
func TestForeignObjectsShowThatTheSelectorIsIgnored(t *testing.T) {
	foreign := fmt.Appendf(nil, `{"metadata":{"uid":%q,"namespace":"ns"}}`, uidIn(1))
	list := metav1.ListOptions{}
	for name, test := range map[string]struct {
		division shards.Division
		lists    []shards.Set
		complete bool
		filter   Filter
		told     int
	}{
		"the API server knows it":             {halves, nil, true, ByServer, 0},
		"it does not":                         {halves, []shards.Set{shards.SetOf(0)}, true, ByOperator, 1},
		"the last watch has just ended":       {halves, []shards.Set{shards.SetOf(0, 1), shards.SetOf(0)}, false, ByServer, 0},
		"after a list that leaves it out":     {halves, []shards.Set{shards.SetOf(0, 1), shards.SetOf(0)}, true, ByOperator, 1},
		"the API server cannot select it":     {shards.Division{Number: 64, ByNamespace: true}, []shards.Set{shards.SetOf(0)}, true, ByOperator, 0},
		"a list of nothing asks for nothing":  {halves, []shards.Set{{}}, true, ByOperator, 0},
		"the list after it shows it as known": {halves, []shards.Set{shards.SetOf(0), shards.SetOf(1)}, true, ByServer, 0},
	} {
		var wanted shards.Set
		told := 0
		share := &Share{Division: test.division, Namespaced: true, Wanted: func() shards.Set { return wanted }, Ignored: func() { told++ }}
		for _, wanted = range test.lists {
			options := list
			share.Narrow(&options)
			if test.complete || !wanted.Equal(test.lists[len(test.lists)-1]) {
				share.Complete()
			}
		}
		for range 2 {
			if test.lists != nil {
				share.hasJSON(gjson.ParseBytes(foreign).Get)
			}
		}
		if share.Filter() != test.filter || told != test.told {
			t.Errorf("%s: the filter is %q, and it is said %d times", name, share.Filter(), told)
		}
	}
	if filter := (&Share{Whole: true}).Filter(); filter != Unfiltered {
		t.Errorf("got %q", filter)
	}
	if filter := (*Share)(nil).Filter(); filter != "" {
		t.Errorf("got %q", filter)
	}
}

func TestWholeStreamsShowEverything(t *testing.T) {
	share := &Share{Division: halves, Whole: true, Wanted: func() shards.Set { return shards.SetOf(1) }}
	options := metav1.ListOptions{}
	share.Narrow(&options)
	if options != (metav1.ListOptions{}) || !share.Has("ns", uidIn(0)) || !share.hasJSON(gjson.Parse(`{"metadata":{"uid":"x"}}`).Get) || !share.Listed().Has(1) {
		t.Errorf("got %+v", options)
	}
}

// pausing is the end of a part of a stream: the next one comes after a time.
type pausing time.Duration

func (p pausing) Read([]byte) (int, error) {
	time.Sleep(time.Duration(p))
	return 0, io.EOF
}

func TestMostEventsOfOtherSharesAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := shards.SetOf(0)
		share := &Share{Division: halves, Wanted: func() shards.Set { return held }}
		share.listed.Store(&held)
		frame := func(name string, shard int) io.Reader {
			return strings.NewReader(fmt.Sprintf(`{"type":"MODIFIED","object":{"metadata":{"name":%q,"resourceVersion":%q,"uid":%q}}}`, name, name, uidIn(shard)) + "\n")
		}
		answer := io.MultiReader(frame("1", 1), frame("2", 1), frame("3", 0), frame("4", 1), pausing(markPause), frame("5", 1), frame("6", 1),
			strings.NewReader(`{"type":"ERROR","object":{"kind":"Status"}}`+"\n"))
		decoder := watchDecoder{codec{share}}
		frames := decoder.NewFrameReader(io.NopCloser(answer))
		var got []string
		for text := make([]byte, 1000); ; {
			n, err := frames.Read(text)
			if err != nil {
				break
			}
			var event metav1.WatchEvent
			if _, _, err := decoder.Decode(text[:n], nil, &event); err != nil {
				t.Fatal(err)
			}
			got = append(got, event.Type+" "+gjson.GetBytes(event.Object.Raw, "metadata.resourceVersion").Str)
		}
		if want := []string{"BOOKMARK 1", "MODIFIED 3", "BOOKMARK 5", "ERROR "}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
