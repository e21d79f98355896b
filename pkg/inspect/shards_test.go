package inspect

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/reconcile"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/shards"
	"github.com/kopf-go/kopf/pkg/shards/ring"
)

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// leaseAt returns a lease of the operator web that was renewed some time before noon, and that has been held for an hour.
func leaseAt(name, holder string, renewed time.Duration) coordinationv1.Lease {
	lease := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: ring.Labels("web")}}
	lease.Spec.HolderIdentity = &holder
	lease.Spec.AcquireTime = ptr.To(metav1.NewMicroTime(noon.Add(-time.Hour)))
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(noon.Add(-renewed)))
	return lease
}

// The replicas of the tests. Of 4 shards, web-1 should have 1 and 2, and web-2 the others.
const one, two = "web-1_a", "web-2_b"

// listed returns what the leases of 4 shards show, with the given holders in turn.
func listed(t *testing.T, adjust func(all map[string]coordinationv1.Lease), holders ...string) *ShardList {
	t.Helper()
	all := map[string]coordinationv1.Lease{
		"web": leaseAt("web", "4 shards by uid", 2*time.Second), "web-replica-1": leaseAt("web-replica-1", one, time.Second), "web-replica-2": leaseAt("web-replica-2", two, 3*time.Second),
	}
	for shard, holder := range holders {
		all[ring.ShardLease("web", shard)] = leaseAt(ring.ShardLease("web", shard), holder, 4*time.Second)
	}
	if adjust != nil {
		adjust(all)
	}
	var leases []coordinationv1.Lease
	for _, lease := range all {
		leases = append(leases, lease)
	}
	s := settings.Replicas{LeaseName: "web", LeaseDuration: 15 * time.Second}
	return shardsOf(ring.Sort("web", leases, s.LeaseDuration), "operators", s, noon)
}

func TestTheReplicasOfTheTestsAreAssignedAsTheyShouldBe(t *testing.T) {
	if got := shards.Assign(4, []string{one, two}); !slices.Equal(got, []string{two, one, one, two}) {
		t.Errorf("got %q", got)
	}
}

func TestShardsSayWhoHandlesThem(t *testing.T) {
	without := func(names ...string) func(map[string]coordinationv1.Lease) {
		return func(all map[string]coordinationv1.Lease) {
			for _, name := range names {
				delete(all, name)
			}
		}
	}
	set := func(leases ...coordinationv1.Lease) func(map[string]coordinationv1.Lease) {
		return func(all map[string]coordinationv1.Lease) {
			for _, lease := range leases {
				all[lease.Name] = lease
			}
		}
	}
	tests := map[string]struct {
		list  *ShardList
		moves []int // the shards that are given up
	}{
		"as it should be":    {listed(t, nil, two, one, one, two), nil},
		"a replica starts":   {listed(t, nil, one, one, one, one), []int{0, 3}},
		"a replica stops":    {listed(t, without("web-replica-2"), two, one, one, two), []int{0, 3}},
		"a replica has died": {listed(t, set(leaseAt("web-replica-2", two, time.Minute), leaseAt("web-shard-2", two, time.Minute)), one, one, "", one), []int{2}},
		"none is held":       {listed(t, nil), []int{0, 1, 2, 3}},
		"all have died": {listed(t, func(all map[string]coordinationv1.Lease) {
			for name, lease := range all {
				all[name] = leaseAt(name, *lease.Spec.HolderIdentity, time.Minute)
			}
		}, two, one, one, two), nil},
		"all have stopped": {listed(t, func(all map[string]coordinationv1.Lease) {
			without("web-replica-1", "web-replica-2")(all)
			set(leaseAt("web", "", time.Minute))(all)
		}, "", "", "", ""), nil},
		"a leader":                     {listed(t, func(all map[string]coordinationv1.Lease) { clear(all); set(leaseAt("web", one, time.Second))(all) }), nil},
		"no lease":                     {listed(t, func(all map[string]coordinationv1.Lease) { clear(all) }), nil},
		"the gate was removed by hand": {listed(t, without("web"), two, one, one, two), nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var moves []int
			for _, shard := range test.list.Shards {
				if shard.Assigned != "" && (shard.Holder != shard.Assigned || shard.Expired) {
					moves = append(moves, shard.Number)
				}
			}
			if !slices.Equal(moves, test.moves) {
				t.Errorf("the shards %v move", moves)
			}
			sentences.Check(t, "", test.list.Text(Style{}))
		})
	}
}

func TestReplicasSayWhatTheyDoForTheirShards(t *testing.T) {
	draining := reconcile.ActiveShard{Number: 0, Handling: true, Draining: noon.Add(-time.Minute), Objects: 5, Left: 2, Calls: []reconcile.ObjectCall{
		{ActiveCall: reconcile.ActiveCall{Handler: "createFn", Since: noon.Add(-time.Hour)}, Resource: "kopfexamples.kopf.dev/v1", Namespace: "default", Name: "first"},
		{ActiveCall: reconcile.ActiveCall{Handler: "nodeFn", Since: noon.Add(-time.Minute)}, Resource: "nodes.v1", Name: "second"},
	}}
	leaving := reconcile.ActiveShard{Number: 1, Handling: true, Draining: noon.Add(-time.Second), Leaving: true, Left: 1}
	tests := map[string]struct {
		of []string
		by reconcile.Activity
	}{
		"it handles them":    {[]string{two, one, one, two}, reconcile.Activity{Replica: one, Shards: []reconcile.ActiveShard{{Number: 1, Handling: true, Objects: 1}, {Number: 2, Handling: true, Objects: 1200}}}},
		"it lists objects":   {[]string{two, one, one, two}, reconcile.Activity{Replica: one, Shards: []reconcile.ActiveShard{{Number: 1, Handling: true}, {Number: 2}}}},
		"it gives one up":    {[]string{one, one, one, two}, reconcile.Activity{Replica: one, Shards: []reconcile.ActiveShard{draining, {Number: 1, Handling: true}, {Number: 2, Handling: true}}}},
		"it stops":           {[]string{two, one, one, two}, reconcile.Activity{Replica: one, Shards: []reconcile.ActiveShard{leaving}}},
		"it has lost one":    {[]string{two, one, one, two}, reconcile.Activity{Replica: one, Shards: []reconcile.ActiveShard{{Number: 1, Handling: true, Lost: true}}}},
		"another operator":   {[]string{two, one, one, two}, reconcile.Activity{Replica: "others-1_x"}},
		"one without shards": {[]string{two, one, one, two}, reconcile.Activity{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			list := listed(t, nil, test.of...)
			list.addActivity("https://127.0.0.1:8443", &test.by)
			sentences.Check(t, "", list.Text(Style{}))
		})
	}
}

// The answer is the same for programs.
func TestShardsAsJSON(t *testing.T) {
	list := listed(t, nil, one, one, one, two)
	list.addActivity("https://127.0.0.1:8443", &reconcile.Activity{Replica: one, Shards: []reconcile.ActiveShard{{Number: 0, Draining: noon}}})
	text, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	sentences.Check(t, "", string(text)+"\n")
	empty := listed(t, func(all map[string]coordinationv1.Lease) { clear(all) })
	if text, err := json.Marshal(empty); err != nil || !strings.Contains(string(text), `"replicas":[],"shards":[]`) {
		t.Errorf("got %s, %v", text, err)
	}
}

// The settings of the program can differ from those of the replicas.
func TestAnotherDivisionInTheSettingsIsNoted(t *testing.T) {
	found := ring.Sort("web", []coordinationv1.Lease{leaseAt("web", "4 shards by uid", time.Second)}, time.Minute)
	for wanted, want := range map[settings.Replicas]string{
		{Shards: 4}: "", {}: "", {Shards: 8}: "say 8 shards by uid. A replica with these does not start", {Shards: 4, ShardKey: settings.ShardByNamespace}: "say 4 shards by namespace.",
	} {
		wanted.LeaseName = "web"
		if got := strings.Join(shardsOf(found, "operators", wanted, noon).Notes, ""); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%v: got %q", wanted, got)
		}
	}
}

// A replica that does not answer leaves the rest of the answer.
func TestAReplicaThatDoesNotAnswerIsNoted(t *testing.T) {
	var asked string
	server := httptest.NewTLSServer(http.HandlerFunc(func(into http.ResponseWriter, request *http.Request) {
		asked = request.URL.String() + " " + request.Header.Get("Authorization")
		if request.Header.Get("Authorization") != "Bearer secret" {
			into.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = fmt.Fprintf(into, `{"replica":%q,"shards":[{"number":1,"handling":true,"objects":7}]}`, one)
	}))
	defer server.Close()
	list := listed(t, nil, two, one, one, two)
	list.AskReplica(t.Context(), Endpoint{URL: server.URL, Token: "wrong"})
	if len(list.Notes) != 1 || !strings.HasPrefix(list.Notes[0], "The replica at "+server.URL+" has not answered: the operator does not accept the token") {
		t.Errorf("got %q", list.Notes)
	}
	list.AskReplica(t.Context(), Endpoint{URL: server.URL, Token: "secret"})
	if asked != "/activity Bearer secret" || list.Shards[1].Now == nil || list.Shards[1].Now.Objects != 7 || list.Replicas[0].Endpoint != server.URL {
		t.Errorf("%s: got %+v", asked, list)
	}
}
