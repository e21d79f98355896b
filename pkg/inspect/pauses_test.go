package inspect

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/peering"
	"github.com/kopf-go/kopf/pkg/reconcile/inspection"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/storage"
)

// Which entry is that of the operator is known only by its identity. Otherwise, entries of operators
// can be its own, and those of people cannot.
func TestOnlyEntriesOfOthersPause(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	alive := func(priority int) peering.Record {
		return peering.Record{Priority: priority, LastSeen: now, Lifetime: time.Minute}
	}
	freeze := alive(100)
	freeze.Message = "a migration"
	tests := map[string]struct {
		settings settings.Peering
		records  map[string]peering.Record
		certain  bool
		pauses   int // how many entries pause the operator
	}{
		"no entries":                       {settings.Peering{}, nil, false, 0},
		"one entry of the same priority":   {settings.Peering{}, map[string]peering.Record{"op-a": alive(0)}, false, 0},
		"its own entry":                    {settings.Peering{Identity: "op-a"}, map[string]peering.Record{"op-a": alive(0)}, true, 0},
		"its own entry, a flag":            {settings.Peering{Identity: "op-b"}, map[string]peering.Record{"op-b": alive(7)}, true, 0},
		"another of the same priority":     {settings.Peering{Identity: "op-a"}, map[string]peering.Record{"op-b": alive(0)}, true, 1},
		"two of the same priority":         {settings.Peering{}, map[string]peering.Record{"op-a": alive(0), "op-b": alive(0)}, true, 1},
		"a higher one of an operator":      {settings.Peering{}, map[string]peering.Record{"op-b": alive(7)}, false, 1},
		"a higher one, known":              {settings.Peering{Identity: "op-a"}, map[string]peering.Record{"op-b": alive(7)}, true, 1},
		"a flag in its own entry":          {settings.Peering{Identity: "op-a"}, map[string]peering.Record{"op-a": alive(8), "op-b": alive(7)}, true, 0},
		"a lower one":                      {settings.Peering{Priority: 8}, map[string]peering.Record{"op-b": alive(7)}, false, 0},
		"an expired one":                   {settings.Peering{}, map[string]peering.Record{"op-b": {Priority: 7, LastSeen: now.Add(-time.Hour), Lifetime: time.Minute}}, false, 0},
		"a freeze by a name":               {settings.Peering{}, map[string]peering.Record{"op-a": alive(0), "jane@laptop": alive(100)}, true, 1},
		"a freeze with a message":          {settings.Peering{}, map[string]peering.Record{"jane@laptop": freeze}, false, 1},
		"a freeze of the same priority":    {settings.Peering{Priority: 100}, map[string]peering.Record{"jane@laptop": freeze}, false, 1},
		"an operator on a laptop":          {settings.Peering{}, map[string]peering.Record{"op-a": alive(0), "jane@laptop/20260131120000/abcdef": alive(666)}, false, 1},
		"an entry of a person":             {settings.Peering{}, map[string]peering.Record{"x": {Priority: 1, Lifetime: time.Minute}}, false, 1},
		"two higher ones":                  {settings.Peering{}, map[string]peering.Record{"op-b": alive(7), "op-c": alive(9)}, false, 2},
		"a higher one, and a freeze of it": {settings.Peering{}, map[string]peering.Record{"op-b": alive(7), "jane@laptop": alive(100)}, true, 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := meeting{Target: peering.Target{Name: "mine"}, object: `ClusterKopfPeering "mine"`, records: test.records, now: now}
			got := m.pauses(test.settings, CommandLine{Flags: []string{"--context=a"}})
			if len(got) != test.pauses {
				t.Errorf("got %d pauses", len(got))
			}
			if test.pauses > 0 {
				sentences.Check(t, "", strings.Join(got, "\n"))
			}
			if got := m.isCertain(test.settings); got != test.certain {
				t.Errorf("it is certain: %v", got)
			}
		})
	}
}

// In the pod of the operator, the environment has its identity.
func TestTheEntryOfThePodIsItsOwn(t *testing.T) {
	t.Setenv("POD_ID", "op-b")
	now := time.Now()
	m := meeting{now: now, records: map[string]peering.Record{"op-a": {LastSeen: now, Lifetime: time.Minute}, "op-b": {Priority: 7, LastSeen: now, Lifetime: time.Minute}}}
	if got := m.pauses(settings.Peering{}, CommandLine{}); got != nil || !m.isCertain(settings.Peering{}) {
		t.Errorf("got %q", got)
	}
	delete(m.records, "op-b")
	if identity, _ := m.own(settings.Peering{}); identity != "" {
		t.Errorf("a variable without an entry counts: %s", identity)
	}
}

// Only whole names tell operators apart, of the storage that has the base.
func TestOtherOperatorsAreFoundByTheirBase(t *testing.T) {
	stored := func(prefix, key string) storage.DiffBase {
		return storage.AnnotationsDiffBase{Prefix: prefix, Key: key}
	}
	replicas := m{"kind": "ReplicaSet", "metadata": m{"ownerReferences": []any{m{"kind": "Deployment"}}}}
	tests := map[string]struct {
		own   storage.DiffBase
		raw   m
		found string // the annotation
		want  string // the prefix of the other operator
	}{
		"its own":                         {stored("kopf.dev", ""), m{}, "kopf.dev/last-handled-configuration", ""},
		"a longer prefix":                 {stored("kopf.dev", ""), m{}, "kopf.dev.example.com/last-handled-configuration", "kopf.dev.example.com"},
		"a shorter prefix":                {stored("kopf.dev.example.com", ""), m{}, "kopf.dev/last-handled-configuration", "kopf.dev"},
		"another prefix than of progress": {stored("bases.example.com", ""), m{}, "bases.example.com/last-handled-configuration", ""},
		"another key":                     {stored("kopf.dev", "base"), m{}, "kopf.dev/last-handled-configuration", "kopf.dev"},
		"a former storage of it":          {storage.MultiDiffBase{stored("new.example.com", ""), stored("old.example.com", "")}, m{}, "old.example.com/last-handled-configuration", ""},
		"its own in the status":           {storage.StatusDiffBase{}, m{}, "kopf.zalando.org/last-handled-configuration", "kopf.zalando.org"},
		"of kubectl":                      {stored("kopf.dev", ""), m{}, "kubectl.kubernetes.io/last-applied-configuration", ""},
		"a note of a person":              {stored("kopf.dev", ""), m{}, "example.com/last-handled-configuration-by-jane", ""},
		"a copy from a deployment":        {stored("kopf.dev", ""), replicas, "example.com/last-handled-configuration", ""},
		"of a replica set":                {stored("kopf.dev", ""), replicas, "example.com/last-handled-configuration-ofDRS", "example.com"},
		"a storage that says nothing":     {struct{ storage.DiffBase }{}, m{}, "example.com/last-handled-configuration", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			raw := &unstructured.Unstructured{Object: test.raw}
			raw.SetAnnotations(map[string]string{test.found: "{}"})
			s := &subject{Object: &inspection.Object{Body: object.NewBody(raw.Object)}, object: raw, diffBase: test.own}
			var want []string
			if test.want != "" {
				want = []string{"Another operator with the prefix " + test.want + " handles the object, too; what it does is not shown."}
			}
			if got := s.others(); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// The webhook configuration selects namespaces only by their names.
func TestAdmissionFollowsTheWebhookConfiguration(t *testing.T) {
	in := func(kind, namespace, name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: m{"apiVersion": "v1", "kind": kind, "metadata": m{"namespace": namespace, "name": name}}}
	}
	const alone = "the webhook configuration of the operator is for the namespaces a, b alone"
	tests := map[string]struct {
		scope           []string
		own             bool
		object          *unstructured.Unstructured
		leftOut, unless string
	}{
		"all namespaces":                 {nil, false, in("Pod", "x", "p"), "", ", unless the operator runs in the namespace x"},
		"all, and its own":               {nil, true, in("Pod", "x", "p"), "", ""},
		"a namespace that is served":     {[]string{"b", "a"}, false, in("Pod", "a", "p"), "", ""},
		"a namespace that is not served": {[]string{"b", "a"}, false, in("Pod", "x", "p"), alone, ""},
		"a pattern":                      {[]string{"a-*"}, false, in("Pod", "x", "p"), "", ", unless the operator runs in the namespace x"},
		"a pattern and a name":           {[]string{"a-*", "x"}, false, in("Pod", "x", "p"), "", ""},
		"an object of the cluster":       {[]string{"b", "a"}, false, in("Node", "", "n"), "", ""},
		"a namespace itself":             {[]string{"b", "a"}, false, in("Namespace", "", "x"), alone, ""},
		"a served namespace itself":      {[]string{"b", "a"}, false, in("Namespace", "", "a"), "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := &Cluster{}
			c.Settings.Scope.Namespaces, c.Settings.Admission.IncludeOwnNamespace = test.scope, test.own
			if leftOut, unless := c.reviewed(test.object); leftOut != test.leftOut || unless != test.unless {
				t.Errorf("got %q, %q", leftOut, unless)
			}
		})
	}
}
