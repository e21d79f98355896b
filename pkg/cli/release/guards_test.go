package release

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kopf-go/kopf/pkg/model/selector"
)

var leases = selector.Resource{Group: "coordination.k8s.io", Version: "v1", Plural: "leases", Kind: "Lease", Namespaced: true}

// ago returns a time as it is in leases and in entries of a peering.
func ago(d time.Duration) string {
	return time.Now().Add(-d).UTC().Format("2006-01-02T15:04:05.000000Z")
}

func TestSignsOfARunningOperator(t *testing.T) {
	lease := func(holder string, seconds int, renewed time.Duration) func(t *testing.T) *unstructured.Unstructured {
		return func(t *testing.T) *unstructured.Unstructured {
			return parse(t, leases, "kopf-operator", fmt.Sprintf(`{"spec":{"holderIdentity":%q,"leaseDurationSeconds":%d,"renewTime":%q}}`, holder, seconds, ago(renewed)))
		}
	}
	entry := func(r selector.Resource, seen time.Duration) func(t *testing.T) *unstructured.Unstructured {
		return func(t *testing.T) *unstructured.Unstructured {
			return parse(t, r, "default", fmt.Sprintf(`{"status":{"me@here":{"priority":1,"lifetime":60,"lastseen":%q}}}`, ago(seen)))
		}
	}
	tests := map[string]struct {
		present    func(t *testing.T) *unstructured.Unstructured
		standalone bool
		want       string
	}{
		"a lease that is held":                {lease("pod-1_x", 15, time.Second), false, "pod-1_x holds the lease default/kopf-operator, which counts until "},
		"a lease that expired a moment ago":   {lease("pod-1_x", 15, 70*time.Second), false, "pod-1_x holds the lease"},
		"a lease that expired":                {lease("pod-1_x", 15, 76*time.Second), false, ""},
		"a long lease":                        {lease("pod-1_x", 3600, time.Hour), false, "pod-1_x holds the lease"},
		"a lease that was released":           {lease("", 1, time.Second), false, ""},
		"a peer":                              {entry(peerings, time.Second), false, `me@here has an entry in the KopfPeering "default/default"`},
		"a peer of the cluster":               {entry(clusterPeerings, time.Second), false, `me@here has an entry in the ClusterKopfPeering "default"`},
		"a peer that expired a moment ago":    {entry(peerings, 110*time.Second), false, `me@here has an entry`},
		"a peer that expired":                 {entry(peerings, 121*time.Second), false, ""},
		"a peer of an operator without peers": {entry(peerings, time.Second), true, ""},
		"a lease of another kind of spec": {func(t *testing.T) *unstructured.Unstructured {
			return parse(t, leases, "kopf-operator", `{"spec":{"renewTime":5}}`)
		}, false, "it is unknown whether an operator runs, because its lease"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, client := newReleaser(t, parse(t, things, "one", traced), test.present(t))
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
