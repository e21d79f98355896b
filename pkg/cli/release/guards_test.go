package release

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/shards/ring"
)

var leases = selector.Resource{Group: "coordination.k8s.io", Version: "v1", Plural: "leases", Kind: "Lease", Namespaced: true}

// ago returns a time as it is in leases and in entries of a peering.
func ago(d time.Duration) string {
	return time.Now().Add(-d).UTC().Format("2006-01-02T15:04:05.000000Z")
}

func TestSignsOfARunningOperator(t *testing.T) {
	lease := func(holder string, seconds int, renewed time.Duration) func(t *testing.T) *unstructured.Unstructured {
		return func(t *testing.T) *unstructured.Unstructured {
			return parse(t, leases, "mine", fmt.Sprintf(`{"spec":{"holderIdentity":%q,"leaseDurationSeconds":%d,"renewTime":%q}}`, holder, seconds, ago(renewed)))
		}
	}
	entry := func(r selector.Resource, seen time.Duration) func(t *testing.T) *unstructured.Unstructured {
		return func(t *testing.T) *unstructured.Unstructured {
			return parse(t, r, "mine", fmt.Sprintf(`{"status":{"me@here/1/a":{"priority":1,"lifetime":60,"lastseen":%q}}}`, ago(seen)))
		}
	}
	tests := map[string]struct {
		present    func(t *testing.T) *unstructured.Unstructured
		standalone bool
		want       string
	}{
		"a lease that is held":                {lease("pod-1_x", 15, time.Second), false, "pod-1_x holds the lease default/mine, which counts until "},
		"a lease that expired a moment ago":   {lease("pod-1_x", 15, 70*time.Second), false, "pod-1_x holds the lease"},
		"a lease that expired":                {lease("pod-1_x", 15, 76*time.Second), false, ""},
		"a long lease":                        {lease("pod-1_x", 3600, time.Hour), false, "pod-1_x holds the lease"},
		"a lease that was released":           {lease("", 1, time.Second), false, ""},
		"a peer":                              {entry(peerings, time.Second), false, `me@here/1/a has an entry in the KopfPeering "default/mine"`},
		"a peer of the cluster":               {entry(clusterPeerings, time.Second), false, `me@here/1/a has an entry in the ClusterKopfPeering "mine"`},
		"a peer that expired a moment ago":    {entry(peerings, 110*time.Second), false, `me@here/1/a has an entry`},
		"a peer that expired":                 {entry(peerings, 121*time.Second), false, ""},
		"a peer of an operator without peers": {entry(peerings, time.Second), true, ""},
		"a lease of another kind of spec": {func(t *testing.T) *unstructured.Unstructured {
			return parse(t, leases, "mine", `{"spec":{"renewTime":5}}`)
		}, false, "it is unknown whether an operator runs, because its lease"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, client := newReleaser(t, parse(t, things, "one", traced), test.present(t))
				r.Settings.Replicas.LeaseName, r.Settings.Peering.Name = "mine", "mine"
				r.Settings.Peering.Standalone = test.standalone
				sent := patches(client)
				report, err := r.Run(t.Context())
				switch {
				case test.want == "" && (err != nil || report == nil || len(*sent) != 1):
					t.Errorf("got %v, and %d writes", err, len(*sent))
				case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || report != nil || len(*sent) > 0):
					t.Errorf("got %v, and %d writes; want %q", err, len(*sent), test.want)
				}
			})
		})
	}
}

// Each lease of an operator with shards refuses. Its replicas can have the flag --shards, so the settings do not matter.
func TestLeasesOfShardsAreSigns(t *testing.T) {
	const replica, shard, gate = "mine-replica-0123456789abcdef", "mine-shard-3", "mine"
	held := func(t *testing.T, name, holder string, renewed time.Duration) *unstructured.Unstructured {
		lease := parse(t, leases, name, fmt.Sprintf(`{"spec":{"holderIdentity":%q,"leaseDurationSeconds":15,"renewTime":%q}}`, holder, ago(renewed)))
		lease.SetLabels(ring.Labels("mine"))
		return lease
	}
	tests := map[string]struct {
		present map[string]string // the holders, by the names of leases
		renewed time.Duration
		want    []string
	}{
		"the division":     {map[string]string{gate: "16 shards by uid"}, time.Second, []string{"an operator with 16 shards by uid holds the lease default/mine, which counts until "}},
		"a replica":        {map[string]string{gate: "", replica: "pod-1_x"}, time.Second, []string{"pod-1_x holds the lease default/" + replica + ", which counts until "}},
		"a shard":          {map[string]string{shard: "pod-1_x"}, time.Second, []string{"pod-1_x holds the lease default/mine-shard-3, which counts until "}},
		"several":          {map[string]string{replica: "pod-1_x", shard: "pod-1_x", "mine-shard-4": "pod-2_y"}, time.Second, []string{"pod-1_x holds the lease default/" + replica + " and 1 other, which count until ", "; pod-2_y holds the lease default/mine-shard-4, which counts"}},
		"a moment ago":     {map[string]string{shard: "pod-1_x"}, 70 * time.Second, []string{"pod-1_x holds the lease"}},
		"expired":          {map[string]string{gate: "16 shards by uid", replica: "pod-1_x", shard: "pod-1_x"}, 76 * time.Second, nil},
		"released":         {map[string]string{gate: "", replica: "", shard: ""}, time.Second, nil},
		"another operator": {map[string]string{"others-shard-3": "pod-1_x"}, time.Second, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				objects := []*unstructured.Unstructured{parse(t, things, "one", traced)}
				for name, holder := range test.present {
					lease := held(t, name, holder, test.renewed)
					if strings.HasPrefix(name, "others") {
						lease.SetLabels(ring.Labels("others"))
					}
					objects = append(objects, lease)
				}
				r, client := newReleaser(t, objects...)
				r.Settings.Replicas.LeaseName = "mine"
				sent := patches(client)
				report, err := r.Run(t.Context())
				switch {
				case len(test.want) == 0 && (err != nil || report == nil || len(*sent) != 1):
					t.Errorf("got %v, and %d writes", err, len(*sent))
				case len(test.want) > 0 && (err == nil || report != nil || len(*sent) > 0):
					t.Errorf("got %v, and %d writes", err, len(*sent))
				}
				for _, want := range test.want {
					if err != nil && !strings.Contains(err.Error(), want) {
						t.Errorf("got %v, want %q", err, want)
					}
				}
			})
		})
	}
}

// Replicas of another operator, whose lease has the default name, go on during the release: shards move among them.
func TestShardsOfOthersCanMove(t *testing.T) {
	held := func(name, holder string) *unstructured.Unstructured {
		lease := parse(t, leases, name, fmt.Sprintf(`{"spec":{"holderIdentity":%q,"renewTime":%q}}`, holder, ago(0)))
		lease.SetLabels(ring.Labels("kopf-operator"))
		return lease
	}
	r, client := newReleaser(t, parse(t, things, "one", traced), parse(t, bare, "two", traced),
		held("kopf-operator-replica-a", "pod-1_x"), held("kopf-operator-replica-b", "pod-2_y"), held("kopf-operator-shard-0", "pod-1_x"))
	sent := patches(client)
	r.Progress = func(string, int, int) {
		if err := client.Tracker().Update(leases.GVR(), held("kopf-operator-shard-0", "pod-2_y"), "default"); err != nil {
			t.Error(err)
		}
	}
	report, err := r.Run(t.Context())
	if err != nil || len(*sent) != 2 || !slices.Contains(report.Left, "The 3 leases of the replicas and the shards of default/kopf-operator.") {
		t.Errorf("got %+v, %v, and %d writes", report, err, len(*sent))
	}
}

// What can be a sign of another operator refuses until the end of the operator is confirmed. What is
// certainly one of this operator refuses in any case, and a freeze in none.
func TestOnlyCertainSignsCountIfTheEndIsConfirmed(t *testing.T) {
	const isDefault = ", but that has the default name, so it can be another operator"
	seen := func(identity, more string) string {
		return fmt.Sprintf(`{"status":{%q:{"priority":1,"lifetime":60,"lastseen":%q%s}}}`, identity, ago(time.Second), more)
	}
	tests := map[string]struct {
		resource           selector.Resource
		name, object       string
		confirmed, refused string // nothing is refused, or why
	}{
		"the default lease":      {leases, "kopf-operator", fmt.Sprintf(`{"spec":{"holderIdentity":"pod-1","renewTime":%q}}`, ago(time.Second)), "", "pod-1 holds the lease default/kopf-operator, which counts until "},
		"another operator":       {clusterPeerings, "default", seen("pod-2", ""), "", `pod-2 has an entry in the ClusterKopfPeering "default"` + isDefault},
		"the identity":           {clusterPeerings, "default", seen("mine@here", ""), "mine@here has an entry", "mine@here has an entry"},
		"the lease in the entry": {clusterPeerings, "default", seen("pod-3", `,"lease":"operators/mine"`), "pod-3 has an entry", "pod-3 has an entry"},
		"another lease":          {clusterPeerings, "default", seen("pod-4", `,"lease":"operators/other"`), "", "pod-4 has an entry"},
		"a freeze":               {clusterPeerings, "default", seen("pod-5", `,"freeze":true`), "", `no operator is in the peering "default"`},
		"a freeze of Kopf":       {clusterPeerings, "default", seen("jane@laptop", ""), "", `no operator is in the peering "default"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r, client := newReleaser(t, parse(t, things, "one", traced), parse(t, test.resource, test.name, test.object))
			r.Settings.Peering.Identity = "mine@here"
			if test.resource.Plural != leases.Plural {
				r.Settings.Replicas.LeaseName = "mine"
			}
			sent := patches(client)
			for _, isConfirmed := range []bool{false, true} {
				r.OperatorStopped = isConfirmed
				want := map[bool]string{false: test.refused, true: test.confirmed}[isConfirmed]
				_, err := r.Run(t.Context())
				if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || (len(*sent) > 0) != (want == "") {
					t.Errorf("confirmed %t: got %v, and %d writes; want %q", isConfirmed, err, len(*sent), want)
				}
				var unknown *UnknownError
				if !isConfirmed && test.confirmed == "" && !errors.As(err, &unknown) {
					t.Errorf("the refusal does not say how to confirm the end: %v", err)
				}
			}
		})
	}
}

// A freeze in the peering that the operator needs shows that the operator is stopped: a frozen one has
// an entry.
func TestAFreezeIsNoOperator(t *testing.T) {
	freeze := fmt.Sprintf(`{"status":{"freeze":{"priority":1,"lifetime":60,"lastseen":%q,"message":"a migration"}}}`, ago(time.Second))
	r, client := newReleaser(t, parse(t, things, "one", traced), parse(t, clusterPeerings, "mine", freeze))
	r.Settings.Peering.Name, r.Settings.Peering.Mandatory, r.OperatorStopped = "mine", true, false
	sent := patches(client)
	if report, err := r.Run(t.Context()); err != nil || len(report.Refused) > 0 || len(*sent) != 1 {
		t.Errorf("got %+v, %v, and %d writes", report, err, len(*sent))
	}
}

// Without a lease or a peering that the operator needs, its end must be confirmed. Those with the default
// names can be of other operators, and others can be left from an earlier run with other flags.
func TestWithoutASignTheEndOfTheOperatorMustBeConfirmed(t *testing.T) {
	lease := func(name string) func(t *testing.T) *unstructured.Unstructured {
		return func(t *testing.T) *unstructured.Unstructured {
			return parse(t, leases, name, `{"spec":{"holderIdentity":"","renewTime":"2026-01-01T00:00:00.000000Z"}}`)
		}
	}
	peering := func(name string) func(t *testing.T) *unstructured.Unstructured {
		return func(t *testing.T) *unstructured.Unstructured {
			return parse(t, clusterPeerings, name, `{"status":{}}`)
		}
	}
	nothing := func(t *testing.T) *unstructured.Unstructured { return parse(t, bare, "other", "{}") }
	named := func(r *Releaser) {
		r.Settings.Name, r.Settings.Replicas.LeaseName, r.Settings.Peering.Name = "mine", "", "mine"
	}
	elects := func(adjust func(*Releaser)) func(*Releaser) {
		return func(r *Releaser) { adjust(r); r.Settings.Replicas.LeaderElection = true }
	}
	needs := func(adjust func(*Releaser)) func(*Releaser) {
		return func(r *Releaser) { adjust(r); r.Settings.Peering.Mandatory = true }
	}
	const noLeader = "but an operator without leader election and without shards holds none, and the settings do not say that this one has either (Settings.Replicas.LeaderElection, Settings.Replicas.Shards)"
	const noPeer = "but an operator with --standalone is in none, and the settings do not say that this one needs it (Settings.Peering.Mandatory)"
	for name, test := range map[string]struct {
		present func(t *testing.T) *unstructured.Unstructured
		adjust  func(*Releaser)
		want    string
	}{
		"nothing":                     {nothing, nil, `there is no lease "kopf-operator"; there is no peering "default". Stop the operator, and confirm that with --operator-stopped; if it has another lease`},
		"the default lease":           {lease("kopf-operator"), nil, `no operator holds the lease "kopf-operator", but that is the default name`},
		"the default peering":         {peering("default"), nil, `no operator is in the peering "default", but that is the default name`},
		"no peering":                  {peering("default"), func(r *Releaser) { r.Settings.Peering.Standalone = true }, "it ignores peerings (settings.Peering.Standalone)"},
		"of another operator":         {nothing, named, `there is no lease "mine"; there is no peering "mine"`},
		"the lease in another place":  {lease("kopf-operator"), func(r *Releaser) { r.LeaseNamespace = "other" }, `there is no lease "kopf-operator"`},
		"its lease":                   {lease("mine"), elects(named), ""},
		"its lease, with shards":      {lease("mine"), func(r *Releaser) { named(r); r.Settings.Replicas.Shards = 16 }, ""},
		"its lease, by an option":     {lease("mine"), elects(func(r *Releaser) { r.LeaseName = "mine" }), ""},
		"the lease in its namespace":  {lease("kopf-operator"), elects(func(r *Releaser) { r.LeaseNamespace = "default" }), ""},
		"the default lease, if meant": {lease("kopf-operator"), elects(func(r *Releaser) { r.LeaseName = "kopf-operator" }), ""},
		"a lease of an earlier run":   {lease("mine"), named, `no operator holds the lease "mine", ` + noLeader + `; there is no peering "mine"`},
		"a lease without election":    {lease("mine"), func(r *Releaser) { r.LeaseName = "mine" }, `no operator holds the lease "mine", ` + noLeader},
		"no lease, with election":     {nothing, elects(named), `there is no lease "mine"`},
		"its peering":                 {peering("mine"), needs(named), ""},
		"a peering it can ignore":     {peering("mine"), named, `there is no lease "mine"; no operator is in the peering "mine", ` + noPeer},
		"a peering, by an option":     {peering("default"), func(r *Releaser) { r.Peering, r.Settings.Peering.Standalone = "default", true }, `no operator is in the peering "default", ` + noPeer},
		"its peering, which it needs": {peering("default"), func(r *Releaser) { r.Settings.Peering.Mandatory = true }, ""},
		"confirmed":                   {nothing, func(r *Releaser) { r.OperatorStopped = true }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, client := newReleaser(t, parse(t, things, "one", traced), test.present(t))
			if r.OperatorStopped = false; test.adjust != nil {
				test.adjust(r)
			}
			r.Settings = r.Settings.WithDefaults()
			r.useNames()
			r.DryRun = true
			report, err := r.Run(t.Context())
			if err != nil || report.Resources[0].Released != 1 || !strings.Contains(strings.Join(report.Refused, ""), test.want) || (len(report.Refused) == 0) != (test.want == "") {
				t.Errorf("got %+v, %v; want %q", report, err, test.want)
			}
			sent := patches(client)
			r.DryRun = false
			report, err = r.Run(t.Context())
			switch {
			case test.want == "" && (err != nil || len(report.Refused) > 0 || len(*sent) != 1):
				t.Errorf("got %+v, %v, and %d writes", report, err, len(*sent))
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "--operator-stopped") || len(*sent) > 0):
				t.Errorf("got %v, and %d writes; want %q", err, len(*sent), test.want)
			}
		})
	}
}

// Without the permission to look for an operator, nothing is written.
func TestWhatCannotBeReadRefuses(t *testing.T) {
	for resource, want := range map[string]string{
		"leases": `because its lease "kopf-operator" cannot be read`, "kopfpeerings": `because the peering "default" cannot be read`, "things": "the objects of things.example.com cannot be listed",
	} {
		t.Run(resource, func(t *testing.T) {
			r, client := newReleaser(t, parse(t, things, "one", traced))
			client.PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, forbidden })
			sent := patches(client)
			if _, err := r.Run(t.Context()); !errors.Is(err, forbidden) || !strings.Contains(err.Error(), want) || len(*sent) > 0 {
				t.Errorf("got %v, and %d writes", err, len(*sent))
			}
		})
	}
}

// An operator that starts meanwhile ends the release before the next page of objects.
func TestAnOperatorStartsMeanwhile(t *testing.T) {
	r, client := newReleaser(t, parse(t, things, "one", traced), parse(t, bare, "two", traced))
	sent := patches(client)
	r.Progress = func(resource string, done, total int) {
		if resource != "things.example.com" || done != 1 || total != 1 {
			t.Errorf("got %s: %d of %d", resource, done, total)
		}
		if err := client.Tracker().Add(parse(t, leases, "kopf-operator", fmt.Sprintf(`{"spec":{"holderIdentity":"new","renewTime":%q}}`, ago(0)))); err != nil {
			t.Error(err)
		}
	}
	report, err := r.Run(t.Context())
	var running *RunningError
	if !errors.As(err, &running) || len(*sent) != 1 {
		t.Errorf("got %v, and %d writes", err, len(*sent))
	}
	if report == nil || len(report.Resources) != 2 || report.Resources[0].Released != 1 || report.Resources[1].Released != 0 {
		t.Errorf("got %+v", report)
	}
}

// The progress of undeclared handlers refuses, unless their ids are given.
func TestTheProgressOfOthersRefuses(t *testing.T) {
	const more = `{"metadata":{"annotations":{` + foreign + `,` + base + `}}}`
	r, client := newReleaser(t, parse(t, things, "one", more), parse(t, things, "two", more))
	sent := patches(client)
	var others *ForeignError
	if _, err := r.Run(t.Context()); !errors.As(err, &others) || others.Objects["other"] != 2 || len(*sent) > 0 ||
		!strings.Contains(err.Error(), "other (objects: 2); if it does not, add --also-ids other") {
		t.Errorf("got %v, and %d writes", err, len(*sent))
	}
	r.AlsoIDs = []string{"other"}
	if report, err := r.Run(t.Context()); err != nil || report.Resources[0].Released != 2 || len(*sent) != 2 {
		t.Errorf("got %+v, %v, and %d writes", report, err, len(*sent))
	}
}

// A dry run says all that the release would be refused for, and what it would do otherwise.
func TestADryRunSaysWhyTheReleaseWouldBeRefused(t *testing.T) {
	r, client := newReleaser(t, parse(t, things, "one", `{"metadata":{"annotations":{`+foreign+`,`+base+`}}}`),
		parse(t, leases, "mine", fmt.Sprintf(`{"spec":{"holderIdentity":"pod-1","renewTime":%q}}`, ago(time.Second))))
	r.Settings.Replicas.LeaseName, r.DryRun = "mine", true
	sent := patches(client)
	report, err := r.Run(t.Context())
	if err != nil || len(report.Refused) != 2 || report.Resources[0].Released != 1 || len(*sent) > 0 {
		t.Fatalf("got %+v, %v, and %d writes", report, err, len(*sent))
	}
	if got := report.Refused[0]; !strings.HasPrefix(got, "an operator still runs") || !strings.Contains(got, "pod-1 holds the lease default/mine") {
		t.Errorf("got %q", got)
	}
	if got := report.Refused[1]; !strings.HasPrefix(got, "objects have the progress of handlers") || !strings.Contains(got, "--also-ids other") {
		t.Errorf("got %q", got)
	}
}

func TestADryRunOnlyReads(t *testing.T) {
	r, client := newReleaser(t, parse(t, things, "one", traced))
	r.DryRun = true
	report, err := r.Run(t.Context())
	if err != nil || !report.DryRun || report.Resources[0].Released != 1 {
		t.Errorf("got %+v, %v", report, err)
	}
	for _, action := range client.Actions() {
		if action.GetVerb() != "list" {
			t.Errorf("got the request %s", action.GetVerb())
		}
	}
}

// Only the namespaces of the settings, or that of the options, are released.
func TestNamespaces(t *testing.T) {
	for name, test := range map[string]struct {
		namespace string
		scope     []string
		want      int
	}{
		"all":                 {"", nil, 2},
		"of the settings":     {"", []string{"team-*"}, 1},
		"of the options":      {"default", nil, 1},
		"although not served": {"default", []string{"team-*"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r, client := newReleaser(t, parse(t, things, "one", traced), parse(t, things, "two", `{"metadata":{"namespace":"team-a","finalizers":["`+finalizer+`"]}}`))
			r.Namespace, r.Settings.Scope.Namespaces = test.namespace, test.scope
			sent := patches(client)
			if report, err := r.Run(t.Context()); err != nil || report.Resources[0].Objects != test.want || len(*sent) != test.want {
				t.Errorf("got %+v, %v, and %d writes", report, err, len(*sent))
			}
		})
	}
}
