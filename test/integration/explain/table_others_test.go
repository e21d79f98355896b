package explain

import (
	"context"
	"fmt"
	"time"

	"github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/inspect"
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

func asItIs(*scene) {}

// The facts about a new object with one handler.
var (
	isDue           = []string{"create", "fn (create): due"}
	isPerhapsPaused = []string{"create", "perhaps held", "fn (create): due"}
	isHeld          = []string{"create", "held", "fn (create): paused"}
	isPaused        = []string{"create", "held", "fn (create): paused", "idle", "paused"}
	isHandled       = []string{"noop", "fn (create): done", "idle"}
)

// electing lets the operator elect its leader.
func (s *scene) electing() {
	r := &s.settings.Replicas
	r.LeaderElection, r.LeaseName, r.LeaseNamespace = true, "shops", s.namespace
}

// others are situations with other operators, clients, and people.
var others = map[string]situation{
	"a person has frozen operators of which none has an entry": met(asItIs, entry("jane@laptop", 100), isPerhapsPaused, isPaused),
	"a person has frozen the operators":                        met(asItIs, entry("op-a", 0)+","+entry("jane@laptop", 100), isHeld, isPaused),
	"operators of one priority pause each other":               met(asItIs, entry("op-a", 0)+","+entry("op-b", 0), isHeld, isPaused),
	"an operator has a higher priority, or is this one":        met(asItIs, entry("op-b", 100), isPerhapsPaused, isPaused),
	"the entry is that of the operator":                        met(func(s *scene) { s.settings.Peering.Identity = "op-b" }, entry("op-b", 100), isDue, isHandled),
	"the peering object has no entries":                        met(func(s *scene) { s.settings.Peering.Mandatory = true }, "", isDue, isHandled),
	"the peering object must exist": {
		arrange: func(s *scene) {
			s.settings.Peering.Name, s.settings.Peering.Mandatory, s.settings.Scope.Namespaces = "shops", true, []string{s.namespace}
			s.OnCreate(examples, create, kopf.ID("fn"))
			s.create("one")
		},
		stopped: []string{"create", "held", "fn (create): paused"},
		running: []string{"create", "held", "fn (create): paused", "idle", "paused"},
	},
	"the operator of the lease was stopped": {
		arrange: func(s *scene) {
			s.electing()
			s.OnCreate(examples, create, kopf.ID("fn"))
			s.start().Stop()
			s.create("one")
		},
		stopped: []string{"create", "held", "fn (create): paused"},
		running: []string{"noop", "fn (create): done", "idle"},
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
		stopped: []string{"create", "held", "fn (create): paused"},
		running: []string{"noop", "fn (create): done", "idle"},
	},
	"the operator of the lease is unknown": {
		arrange: func(s *scene) {
			s.settings.Replicas.LeaseName, s.settings.Replicas.LeaseNamespace = "shops", s.namespace
			s.OnCreate(examples, create, kopf.ID("fn"))
			s.create("one")
		},
		stopped: []string{"create", "fn (create): due"},
		running: []string{"noop", "fn (create): done", "idle"},
	},
	"the object does not match the selectors of the watch": {
		arrange: func(s *scene) {
			s.settings.Watching.LabelSelectors = map[string]string{"kopfexamples": "app=web"}
			s.settings.Watching.FieldSelectors = map[string]string{"*": "metadata.name!=other"}
			s.OnCreate(examples, create, kopf.ID("fn"))
			s.create("one")
		},
		stopped: []string{"create", "held", "fn (create): paused"},
		running: []string{"create", "held", "fn (create): paused", "idle", "unknown object"},
	},
	"the API server does not know the selector of the watch": {
		arrange: func(s *scene) {
			s.settings.Watching.FieldSelectors = map[string]string{"kopfexamples": "spec.field=a"}
			s.OnCreate(examples, create, kopf.ID("fn"))
			s.create("one")
		},
		stopped: []string{"create", "held", "fn (create): paused"},
		running: []string{"create", "held", "fn (create): paused", "idle", "unknown object"},
	},
	"the object matches the selectors of the watch": {
		arrange: func(s *scene) {
			s.settings.Watching.LabelSelectors = map[string]string{"kopfexamples": "app!=web"}
			s.OnCreate(examples, create, kopf.ID("fn"))
			s.create("one")
		},
		stopped: []string{"create", "fn (create): due"},
		running: []string{"noop", "fn (create): done", "idle"},
	},
	"another operator has the finalizer, too": {
		arrange: func(s *scene) {
			s.OnDelete(examples, create, kopf.ID("fn"))
			s.releaseAfterwards()
			s.patch(s.create("one"), `{"metadata":{"annotations":{"other.example.com/last-handled-configuration":"{}"}}}`)
		},
		stopped: []string{"create", "fn (delete): later"},
		running: []string{"noop", "fn (delete): later", "idle"},
	},
	"another client undoes the writes": {
		arrange: func(s *scene) {
			s.settings.Queueing.ContentionDelays = []time.Duration{time.Hour}
			want := func(_ context.Context, c *kopf.Change) error { c.Patch().Set("a", "spec", "x"); return nil }
			s.OnCreate(examples, want, kopf.ID("fn"))
			s.OnUpdate(examples, want, kopf.ID("fn"))
			s.create("one")
		},
		stopped: []string{"create", "fn (create): due", "fn (update): later"},
		during:  undoing,
		running: []string{"update", `change spec.x: "a" -> "b"`, "fn (create): done", "fn (update): due", "contention", "looks later"},
	},
	"the object does not fit the Go type": {
		arrange: func(s *scene) {
			s.know(&testenv.Sized{})
			kopf.For[*testenv.Sized](s.Registry).OnCreate(func(context.Context, *testenv.Sized, *kopf.Change) error { return nil }, kopf.ID("fn"))
			s.patch(s.create("one"), `{"spec":{"size":"large"}}`)
		},
		stopped: []string{"create", "fn (create): misfit"},
		running: []string{"create", "fn (create): misfit", "idle"},
	},
	"the object does not fit the Go type of a daemon": {
		arrange: func(s *scene) {
			s.know(&testenv.Sized{})
			kopf.For[*testenv.Sized](s.Registry).Daemon(func(_ context.Context, _ *testenv.Sized, task *kopf.Task) error { <-task.Stopped(); return nil }, kopf.ID("fn"))
			s.patch(s.create("one"), `{"spec":{"size":"large"}}`)
		},
		stopped: []string{"no cause", "fn (daemon): misfit"},
		running: []string{"no cause", "fn (daemon): misfit", "idle"},
	},
	"a filter of a Go object rejects it": {
		arrange: func(s *scene) {
			s.know(&testenv.Sized{})
			kopf.For[*testenv.Sized](s.Registry).OnCreate(func(context.Context, *testenv.Sized, *kopf.Change) error { return nil }, kopf.ID("fn"),
				kopf.WhenObject(func(w *testenv.Sized) bool { return w.Spec.Size > 5 }))
			s.patch(s.create("one"), `{"spec":{"size":1}}`)
		},
		stopped: []string{"create", "fn (create): mismatched"},
		running: []string{"create", "fn (create): mismatched", "idle"},
	},
}

// undoing changes what the operator writes, until it waits. It can see two changes as one, so there is no number.
func undoing(s *scene) {
	s.t.Helper()
	at := inspect.Endpoint{URL: "https://" + s.settings.Metrics.Address, Token: s.token("undoing", true)}
	obj := s.object()
	for {
		waits := false
		s.Eventually(func(g gomega.Gomega) {
			said, err := s.now("one", at)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			current, err := cluster.Current(obj)()
			g.Expect(err).NotTo(gomega.HaveOccurred())
			value, _, _ := unstructured.NestedString(current.Object, "spec", "x")
			waits = value == "b" && said.Now.Contention.Duration > 0
			g.Expect(waits || value == "a").To(gomega.BeTrue())
		}).Should(gomega.Succeed())
		if waits {
			return
		}
		s.patch(obj.DeepCopy(), `{"spec":{"x":"b"}}`)
	}
}

// know adds a type of the object to the scheme.
func (s *scene) know(of runtime.Object) {
	s.scheme = runtime.NewScheme()
	s.scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "kopf.dev", Version: "v1", Kind: "KopfExample"}, of)
}
