package explain

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// met is about a new object, and the entries of the peering object of the namespace.
func met(adjust func(s *scene), entries string, stopped, running []string) situation {
	return situation{
		arrange: func(s *scene) {
			s.settings.Peering.Name, s.settings.Scope.Namespaces = "shops", []string{s.namespace}
			adjust(s)
			s.OnCreate(examples, create, kopf.ID("fn"))
			s.create("one")
			object := testenv.NewObject("KopfPeering", s.namespace, "shops", nil)
			s.Expect(cluster.Client().Create(s.t.Context(), object)).To(gomega.Succeed())
			s.patch(object, `{"status":{`+entries+`}}`)
		},
		stopped: stopped, running: running,
	}
}

// entry returns an entry of a peering object that is alive.
func entry(identity string, priority int) string {
	return fmt.Sprintf(`%q:{"priority":%d,"lifetime":3600,"lastseen":%q}`, identity, priority, at(0))
}

const (
	isPaused = "- The operator is paused by another one."
	inShops  = ` in the KopfPeering "shops" in the namespace "default" has the priority 100, and pauses operators of the priority 0 until `
	leaves   = "it leaves, or until TIME without its renewal."
	isFrozen = "- jane@laptop" + inShops + "TIME, or until kopf resume ends it. To end that: kopf resume --id jane@laptop --peering shops -n default"
	noShops  = `- The operator pauses, because its peering object is mandatory: there is no KopfPeering "shops" in the namespace "default": create it with: echo '{"apiVersion":"kopf.dev/v1","kind":"KopfPeering","metadata":{"namespace":"default","name":"shops"}}' | kubectl create -f -`
)

func asItIs(*scene) {}

// electing lets the operator elect its leader.
func (s *scene) electing() {
	r := &s.settings.Replicas
	r.LeaderElection, r.LeaseName, r.LeaseNamespace = true, "shops", s.namespace
}

// others are situations with other operators, clients, and people.
var others = map[string]situation{
	"a person has frozen operators of which none has an entry": met(asItIs, entry("jane@laptop", 100),
		[]string{"Perhaps nothing happens now, because", strings.Replace(isFrozen, " To end", " No operator has an entry: one with --standalone, or with --namespace, does not use the object. To end", 1), "- fn (create) will run, if an operator is running and not paused"},
		[]string{"Nothing happens now, because", isFrozen, "- fn (create) would run", isPaused}),
	"a person has frozen the operators": met(asItIs, entry("op-a", 0)+","+entry("jane@laptop", 100),
		[]string{"Nothing happens now, because", isFrozen, "- fn (create) would run"},
		[]string{"Nothing happens now, because", isFrozen, "- fn (create) would run", isPaused}),
	"operators of one priority pause each other": met(asItIs, entry("op-a", 0)+","+entry("op-b", 0),
		[]string{"Nothing happens now, because", `- In the KopfPeering "shops" in the namespace "default", op-a and op-b have the same priority 0, and pause each other: give them distinct ones by --priority. If op-a was killed, that ends at TIME (in SOME TIME) without your help.`, "- fn (create) would run"},
		[]string{"Nothing happens now, because", "- fn (create) would run", isPaused}),
	"an operator has a higher priority, or is this one": met(asItIs, entry("op-b", 100),
		[]string{"Perhaps nothing happens now, because", "- op-b" + inShops + leaves + " If that is this operator, run with --priority 100, it is active.", "- fn (create) will run, if an operator is running and not paused"},
		[]string{"Nothing happens now, because", "- The running operator is paused by another one.", "- fn (create) would run", isPaused}),
	"the entry is that of the operator": met(func(s *scene) { s.settings.Peering.Identity = "op-b" }, entry("op-b", 100),
		[]string{"- fn (create) will run, if an operator is running", `- KopfPeering "shops" in the namespace "default": op-b (priority 100) was active SOME TIME ago, and pauses no other`},
		[]string{isHandled, nothingDue}),
	"the peering object has no entries": met(func(s *scene) { s.settings.Peering.Mandatory = true }, "",
		[]string{isNew, "- fn (create) will run, if an operator is running"}, []string{isHandled, nothingDue}),
	"the peering object must exist": {
		arrange: func(s *scene) {
			s.settings.Peering.Name, s.settings.Peering.Mandatory, s.settings.Scope.Namespaces = "shops", true, []string{s.namespace}
			s.OnCreate(examples, create, kopf.ID("fn"))
			s.create("one")
		},
		stopped: []string{"Nothing happens now, because", noShops, "- fn (create) would run"},
		running: []string{"Nothing happens now, because", noShops, "- fn (create) would run", isPaused},
	},
	"the operator of the lease was stopped": {
		arrange: func(s *scene) {
			s.electing()
			s.OnCreate(examples, create, kopf.ID("fn"))
			s.start().Stop()
			s.create("one")
		},
		stopped: []string{"Nothing happens now, because", "- No operator holds the lease default/shops: none with leader election is running.", "- fn (create) would run"},
		running: []string{"Leader", isHandled, nothingDue},
	},
	"the operator of the lease has died": {
		arrange: func(s *scene) {
			s.electing()
			s.OnCreate(examples, create, kopf.ID("fn"))
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "shops", Namespace: s.namespace}}
			lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: new("my-operator-7d9c_1"), LeaseDurationSeconds: new(int32(1)), RenewTime: &metav1.MicroTime{Time: time.Now().Add(-time.Hour)}}
			s.Expect(cluster.Client().Create(s.t.Context(), lease)).To(gomega.Succeed())
			s.create("one")
		},
		stopped: []string{"Nothing happens now, because", "- The lease of my-operator-7d9c_1, default/shops, has expired: TIME (SOME TIME ago). No operator with leader election is running, or none can renew it.", "- fn (create) would run"},
		running: []string{"Leader", isHandled, nothingDue},
	},
	"the operator of the lease is unknown": {
		arrange: func(s *scene) {
			s.settings.Replicas.LeaseName, s.settings.Replicas.LeaseNamespace = "shops", s.namespace
			s.OnCreate(examples, create, kopf.ID("fn"))
			s.create("one")
		},
		stopped: []string{"- There is no lease default/shops: no operator that elects its leader by this lease has run there. In a manager of another program, the lease is the one of its LeaderElectionID.", "- fn (create) will run, if an operator is running", "- Whether a handler that will run is running already is not decidable here: ask the operator by --running, or see its log with --verbose."},
		running: []string{isHandled, nothingDue},
	},
	"another operator has the finalizer, too": {
		arrange: func(s *scene) {
			s.OnDelete(examples, create, kopf.ID("fn"))
			s.releaseAfterwards()
			s.patch(s.create("one"), `{"metadata":{"annotations":{"other.example.com/last-handled-configuration":"{}"}}}`)
		},
		stopped: []string{sharedFinalizer},
		running: []string{sharedFinalizer, nothingDue},
	},
	"another client undoes the writes": {
		arrange: func(s *scene) {
			s.settings.Queueing.ContentionDelays = []time.Duration{time.Hour}
			want := func(_ context.Context, c *kopf.Change) error { c.Patch().Set("a", "spec", "x"); return nil }
			s.OnCreate(examples, want, kopf.ID("fn"))
			s.OnUpdate(examples, want, kopf.ID("fn"))
			s.create("one")
		},
		stopped: []string{isNew, "- fn (create) will run, if an operator is running", "- fn (update) has nothing to do: it is for later changes"},
		during:  undoing,
		running: []string{"- Writes to the object wait for another SOME TIME, because another client keeps undoing them."},
	},
	"the object does not fit the Go type": {
		arrange: func(s *scene) {
			s.know(&testenv.Sized{})
			kopf.For[*testenv.Sized](s.Registry).OnCreate(func(context.Context, *testenv.Sized, *kopf.Change) error { return nil }, kopf.ID("fn"))
			s.patch(s.create("one"), `{"spec":{"size":"large"}}`)
		},
		stopped: []string{isNew, "- fn (create) " + misfit, "→ " + toFit + ", or: ./my-operator skip kopfexamples.kopf.dev/one -n default fn"},
		running: []string{"- fn (create) " + misfit, "→ " + toFit + ", or: ./my-operator skip kopfexamples.kopf.dev/one -n default fn", nothingDue},
	},
	"the object does not fit the Go type of a daemon": {
		arrange: func(s *scene) {
			s.know(&testenv.Sized{})
			kopf.For[*testenv.Sized](s.Registry).Daemon(func(_ context.Context, _ *testenv.Sized, task *kopf.Task) error { <-task.Stopped(); return nil }, kopf.ID("fn"))
			s.patch(s.create("one"), `{"spec":{"size":"large"}}`)
		},
		stopped: []string{"- fn (daemon) " + misfit, "→ " + toFit},
		running: []string{"- fn (daemon) " + misfit, nothingDue},
	},
	"a filter of a Go object rejects it": {
		arrange: func(s *scene) {
			s.know(&testenv.Sized{})
			kopf.For[*testenv.Sized](s.Registry).OnCreate(func(context.Context, *testenv.Sized, *kopf.Change) error { return nil }, kopf.ID("fn"),
				kopf.WhenObject(func(w *testenv.Sized) bool { return w.Spec.Size > 5 }))
			s.patch(s.create("one"), `{"spec":{"size":1}}`)
		},
		stopped: []string{leftAlone, notFor + "the function of WhenObject returns false for the object as it is now"},
		running: []string{leftAlone, notFor + "the function of WhenObject returns false for the object as it is now", nothingDue},
	},
}

const (
	sharedFinalizer = "- Another operator with the prefix other.example.com handles the object, too; what it does is not shown. If it uses the finalizer " + finalizer + ", too, each of them removes it without waiting for the other: set different ones in Settings.Persistence.Finalizer."
	misfit          = "cannot be called: the object does not fit the Go type *testenv.Sized in spec.size: json: cannot unmarshal string into Go struct field .spec.size of type int"
	toFit           = "correct the object, or deploy an operator with a type that fits"
)

// overwrites is the number of those that an operator takes.
const overwrites = 10

// undoing changes what the operator writes, until it waits.
func undoing(s *scene) {
	s.t.Helper()
	obj := s.object()
	for i := range overwrites + 1 {
		s.Eventually(cluster.Current(obj)).Should(testenv.HavePath("spec.x", "a"))
		s.patch(obj.DeepCopy(), fmt.Sprintf(`{"spec":{"x":"b%d"}}`, i))
	}
}

// know adds a type of the object to the scheme.
func (s *scene) know(of runtime.Object) {
	s.scheme = runtime.NewScheme()
	s.scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "kopf.dev", Version: "v1", Kind: "KopfExample"}, of)
}
