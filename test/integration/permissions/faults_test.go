package permissions

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/rbac"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
	"github.com/kopf-go/kopf/test/audit"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// TestFaultsNeedNothingElse runs an operator with everything that needs permissions, through faults:
// an API server without streamed lists, conflicts, watches that end or have expired, a dead peer, a
// certificate to be replaced, and restarts. No request is refused, and every derived rule is used.
func TestFaultsNeedNothingElse(t *testing.T) {
	t.Parallel()
	b, registry := newBench(t), kopf.NewRegistry()
	declareAll(registry)
	registry.Conditions(examples)
	registry.OnValidate(examples, func(context.Context, *kopf.Admission) error { return nil }, kopf.ID("validate"))
	s := b.everything()
	for _, version := range []string{"kopf.dev/v1", "zalando.org/v1"} {
		peering := testenv.NewObject("KopfPeering", b.namespace, s.Peering.Name, nil)
		peering.SetAPIVersion(version)
		b.create(peering)
	}
	b.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "webhook"}})
	grants := b.grantObjects(registry, s)

	config := b.config()
	faults := testenv.Strike(config)
	start := func(fault testenv.Fault, hits func(testenv.Request) bool) *operators.Operator {
		faults.Begin(fault, hits)
		return operators.Start(t, config, b.namespace, registry, func(o *kopf.Options) { o.Settings = s })
	}
	older := start(testenv.Answer(http.StatusUnprocessableEntity, "Invalid", 0), func(r testenv.Request) bool { return strings.Contains(r.URI, "sendInitialEvents") })
	b.handles("with-lists")
	older.Stop()

	newer := start(testenv.Answer(http.StatusGone, "Expired", 0), func(testenv.Request) bool { return false })
	b.handles("with-watches")
	faults.Begin(testenv.Answer(http.StatusGone, "Expired", 0), func(r testenv.Request) bool { return r.Method == testenv.MethodWatch })
	faults.Heal()
	b.handles("with-new-watches")
	b.conflicts()
	b.outlives(s.Peering.Name)
	newer.Stop()
	b.Expect(cluster.Client().Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "webhook"}})).To(gomega.Succeed())
	start(nil, nil)
	b.handles("after-a-restart")

	b.Expect(b.refused()).To(gomega.BeEmpty())
	b.Expect(audit.Unused(grants, requests.Of(t, b.user), elsewhere)).To(gomega.BeEmpty())
}

// elsewhere contains permissions that these faults do not need.
var elsewhere = map[audit.Use]audit.Elsewhere{
	{For: "Events about the objects, as kubectl describe shows them.", Verb: "patch"}: {
		Why: "an event is repeated", Test: "test/integration/deployment.TestDeployments",
	},
}

func TestOtherTestsUseTheRest(t *testing.T) { audit.CheckTests(t, elsewhere) }

// everything returns settings that need all permissions but those of secure metrics.
func (b *bench) everything() kopf.Settings {
	s := kopf.Settings{Name: b.name}
	s.Scope.Namespaces = []string{b.namespace}
	s.Persistence.Finalizer = b.namespace + ".example.com/finalizer"
	s.Replicas.LeaderElection, s.Replicas.LeaseNamespace = true, b.namespace
	s.Peering.Name, s.Peering.Mandatory, s.Peering.Lifetime = "mine", true, 10*time.Second
	s.Admission.Server = servers.Server{Port: testenv.FreePort(b.t), Secret: b.namespace + "/webhook"}
	s.Admission.Managed = b.namespace + ".kopf.dev"
	return s
}

// grantObjects applies the derived roles, with their reasons, and returns what they grant.
func (b *bench) grantObjects(registry *kopf.Registry, s kopf.Settings) []audit.Grant {
	b.t.Helper()
	objects, problems := rbac.Objects(b.input(registry, s), rbac.Account{Namespace: b.namespace, Name: b.account().Name})
	b.Expect(problems).To(gomega.BeEmpty())
	var all []*unstructured.Unstructured
	var text strings.Builder
	for _, object := range objects {
		content, err := json.Marshal(object)
		b.Expect(err).NotTo(gomega.HaveOccurred())
		text.Write(append(content, '\n'))
		one := &unstructured.Unstructured{}
		b.Expect(one.UnmarshalJSON(content)).To(gomega.Succeed())
		all = append(all, one)
	}
	b.grant(text.String())
	return audit.Grants(b.t, all)
}

func (b *bench) create(object client.Object) {
	b.t.Helper()
	b.Expect(cluster.Client().Create(b.t.Context(), object)).To(gomega.Succeed())
}

// conflicts changes an object faster than the operator writes, until the operator has read it.
func (b *bench) conflicts() {
	b.t.Helper()
	object := testenv.NewObject("KopfExample", b.namespace, "disputed", nil)
	b.create(object)
	n := 0
	b.Eventually(func() (bool, error) {
		n++
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"field":"%d"}}`, n))
		err := cluster.Client().Patch(b.t.Context(), object.DeepCopy(), patch)
		return requests.Has(b.t, b.user, "get", "kopfexamples")(), err
	}).Should(gomega.BeTrue())
}

// outlives writes an operator of a higher priority into the peering, until the operator has looked
// for another sign of its life.
func (b *bench) outlives(peering string) {
	b.t.Helper()
	object := testenv.NewObject("KopfPeering", b.namespace, peering, nil)
	peers := func() []string {
		current, err := cluster.Current(object)()
		b.Expect(err).NotTo(gomega.HaveOccurred())
		entries, _, _ := unstructured.NestedMap(current.Object, "status")
		var names []string
		for name := range entries {
			names = append(names, name)
		}
		return names
	}
	b.Eventually(func() (bool, error) {
		if !slices.Contains(peers(), "stranger") {
			now := time.Now().UTC().Format("2006-01-02T15:04:05.000000+00:00")
			patch := `{"status": {"stranger": {"priority": 100, "lifetime": 3, "lastseen": "` + now + `"}}}`
			if err := cluster.Client().Patch(b.t.Context(), object.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
				return false, err
			}
		}
		return requests.Has(b.t, b.user, "get", "kopfpeerings")(), nil
	}).WithTimeout(2 * time.Minute).Should(gomega.BeTrue())
	b.Eventually(peers).ShouldNot(gomega.ContainElement("stranger"))
}

// Without the permission to read the definition, conditions work, no request is refused, and the log
// says what is not checked.
func TestConditionsNeedNoDefinition(t *testing.T) {
	t.Parallel()
	for name, permitted := range map[string]bool{"with the rule": true, "without the rule": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, registry, journal := newBench(t), kopf.NewRegistry(), &operators.Journal{}
			registry.OnCreate(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("create"))
			registry.Conditions(examples)
			s := kopf.Settings{Name: b.name}
			s.Scope.Namespaces = []string{b.namespace}
			roles := b.derive(registry, s)
			if !permitted {
				roles = slices.DeleteFunc(roles, func(r rbac.Role) bool { return r.Namespace == "" })
			}
			b.grant(rbac.YAML(b.name, roles, rbac.Account{}))
			operators.Start(t, b.config(), b.namespace, registry, func(o *kopf.Options) { o.Settings, o.Logger = s, journal.Logger() })
			object := testenv.NewObject("KopfExample", b.namespace, "one", nil)
			b.create(object)
			b.Eventually(cluster.Current(object)).Should(testenv.HavePath("status.conditions", gomega.ContainElement(gomega.And(
				gomega.HaveKeyWithValue("type", "Ready"), gomega.HaveKeyWithValue("status", "True")))))
			b.Expect(b.refused()).To(gomega.BeEmpty())
			b.Expect(requests.Has(t, b.user, "get", "customresourcedefinitions")()).To(gomega.Equal(permitted))
			b.Expect(journal.With("The schema cannot be checked", "kopfexamples.kopf.dev")).To(gomega.HaveLen(map[bool]int{false: 1}[permitted]))
		})
	}
}
