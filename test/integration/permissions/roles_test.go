package permissions

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/rbac"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// declareAll declares handlers of all kinds, and what they do with a client.
func declareAll(r *kopf.Registry) {
	r.OnCreate(examples, func(ctx context.Context, c *kopf.Change) error {
		c.SetResult("done")
		return c.Client().Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace(), Name: c.Name()}})
	}, kopf.ID("create"))
	r.Needs(kopf.Resource("v1", "configmaps"), "create", "delete")
	r.OnDelete(examples, func(ctx context.Context, c *kopf.Change) error {
		return c.Client().Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace(), Name: c.Name()}})
	}, kopf.ID("delete"))
	r.OnEvent(examples, func(_ context.Context, e *kopf.WatchEvent) error {
		e.Patch().Set("seen", "metadata", "labels", "seen")
		return nil
	}, kopf.ID("event"))
	r.Daemon(examples, func(_ context.Context, t *kopf.Task) error {
		t.Patch().Set("ran", "status", "daemon")
		<-t.Stopped()
		return nil
	}, kopf.ID("daemon"))
	r.Timer(examples, func(context.Context, *kopf.Tick) error { return nil }, kopf.ID("timer"), kopf.Interval(time.Hour))
	kopf.NewIndex(r, kopf.Resource("v1", "services"), func(_ context.Context, i *kopf.Indexed) (map[string]string, error) {
		return map[string]string{i.Name(): ""}, nil
	}, kopf.ID("services"))
	r.OnChild(examples, kopf.Resource("v1", "secrets"), func(context.Context, *kopf.ChildChange) error { return nil }, kopf.ID("child"))
}

// handles creates an object, waits until it is handled, and deletes it.
func (b *bench) handles(name string) {
	b.t.Helper()
	object := testenv.NewObject("KopfExample", b.namespace, name, nil)
	// After a new certificate, the API server refuses objects until it has read the new configuration.
	b.Eventually(func() error { return cluster.Client().Create(b.t.Context(), object.DeepCopy()) }).Should(gomega.Succeed())
	b.Eventually(cluster.Current(object)).Should(gomega.And(
		testenv.HavePath("status.create", "done"), testenv.HavePath("metadata.labels.seen", "seen")))
	b.Expect(cluster.Client().Delete(b.t.Context(), object)).To(gomega.Succeed())
	b.Eventually(cluster.Exists(object)).Should(gomega.BeFalse())
}

// An operator with all kinds of handlers needs nothing but the derived roles.
func TestDerivedRolesSuffice(t *testing.T) {
	t.Parallel()
	for name, adjust := range map[string]func(*kopf.Settings, string){
		"cluster":   func(*kopf.Settings, string) {},
		"namespace": func(s *kopf.Settings, namespace string) { s.Scope.Namespaces = []string{namespace} },
		"pattern": func(s *kopf.Settings, namespace string) {
			s.Scope.Namespaces = []string{namespace[:len(namespace)-1] + "*"}
		},
		"replicas": func(s *kopf.Settings, namespace string) {
			s.Scope.Namespaces = []string{namespace}
			s.Replicas.LeaderElection, s.Replicas.LeaseNamespace = true, namespace
		},
		"shards": func(s *kopf.Settings, namespace string) {
			s.Scope.Namespaces = []string{namespace}
			s.Replicas.Shards, s.Replicas.LeaseNamespace = 4, namespace
		},
		"admission": func(s *kopf.Settings, namespace string) {
			s.Scope.Namespaces = []string{namespace}
			s.Admission.Server = servers.Server{Port: testenv.FreePort(t), Secret: namespace + "/webhook"}
			s.Admission.Managed = namespace + ".kopf.dev"
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, registry := newBench(t), kopf.NewRegistry()
			declareAll(registry)
			settings := kopf.Settings{Name: b.name}
			settings.Persistence.Finalizer = b.namespace + ".example.com/finalizer"
			adjust(&settings, b.namespace)
			if name == "admission" {
				registry.OnValidate(examples, func(context.Context, *kopf.Admission) error { return nil }, kopf.ID("validate"))
			}
			if name == "cluster" {
				registry = kopf.NewRegistry() // other tests have objects, too
				registry.OnEvent(examples, func(_ context.Context, e *kopf.WatchEvent) error { return nil }, kopf.ID("event"))
			}
			b.grant(rbac.YAML(b.name, b.derive(registry, settings), rbac.Account{Namespace: b.namespace, Name: "operator"}))
			operators.Start(t, b.config(), b.namespace, registry, func(o *kopf.Options) { o.Settings = settings })
			if name == "cluster" {
				object := testenv.NewObject("KopfExample", b.namespace, "one", nil)
				b.Expect(cluster.Client().Create(t.Context(), object)).To(gomega.Succeed())
			} else {
				b.handles("one")
			}
			b.Expect(b.refused()).To(gomega.BeEmpty())
		})
	}
}

// A missing permission is named with the rule, which makes the operator work.
func TestMissingRulesAreNamed(t *testing.T) {
	t.Parallel()
	b, registry, log := newBench(t), kopf.NewRegistry(), &operators.Journal{}
	registry.OnCreate(examples, func(ctx context.Context, c *kopf.Change) error {
		c.SetResult("done")
		err := c.Client().Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace(), Name: c.Name()}})
		if err != nil {
			return kopf.Temporary(err, 100*time.Millisecond)
		}
		return nil
	}, kopf.ID("create"))
	settings := kopf.Settings{Name: b.name}
	settings.Scope.Namespaces = []string{b.namespace}
	b.grant(rbac.YAML(b.name, b.derive(registry, settings), rbac.Account{}))
	operators.Start(t, b.config(), b.namespace, registry, func(o *kopf.Options) { o.Settings, o.Logger = settings, log.Logger() })
	object := testenv.NewObject("KopfExample", b.namespace, "one", nil)
	b.Expect(cluster.Client().Create(t.Context(), object)).To(gomega.Succeed())
	const rule = `- {apiGroups: [\"\"], resources: [configmaps], verbs: [create]}`
	said := func() []string { return log.With("lacks a permission", rule) }
	b.Eventually(said).Should(gomega.HaveLen(1), log.String)
	b.grant("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: added, namespace: " + b.namespace + "}\nrules:\n" +
		`  - {apiGroups: [""], resources: [configmaps], verbs: [create]}` + "\n")
	b.Eventually(cluster.Current(object)).Should(testenv.HavePath("status.create", "done"))
	b.Expect(said()).To(gomega.HaveLen(1), "it is said once")
}

// What an operator has learned is sufficient for another one, with a connection of its own, and in
// the manager of another program.
func TestLearnedRolesSuffice(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		start func(b *bench, config *rest.Config, registry *kopf.Registry, s kopf.Settings) (stop func())
		reads string // the verbs by which the client lists service accounts
	}{
		"of an operator": {(*bench).startOperator, "list"},
		"of a manager":   {(*bench).startManager, "list, watch"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, file := newBench(t), filepath.Join(t.TempDir(), "roles.yaml")
			settings := kopf.Settings{Name: b.name}
			settings.Scope.Namespaces = []string{b.namespace}
			run := func(name string, config *rest.Config, learnFile string) {
				settings.Permissions.LearnFile = learnFile
				stop := test.start(b, config, usingAClient(), settings)
				object := testenv.NewObject("KopfExample", b.namespace, name, nil)
				b.Expect(cluster.Client().Create(t.Context(), object)).To(gomega.Succeed())
				b.Eventually(cluster.Current(object)).Should(testenv.HavePath("status.create", "done"))
				stop()
			}
			run("one", cluster.Config(), file)
			text, err := os.ReadFile(file)
			b.Expect(err).NotTo(gomega.HaveOccurred())
			b.Expect(string(text)).To(gomega.And(gomega.HavePrefix("# A LOWER BOUND"),
				gomega.ContainSubstring("resources: [configmaps]\n    verbs: [create]"), gomega.ContainSubstring("resources: [serviceaccounts]\n    verbs: ["+test.reads+"]"),
				gomega.Not(gomega.ContainSubstring("ClusterRole"))))
			b.grant(string(text))
			run("two", b.config(), "")
			b.Expect(b.refused()).To(gomega.BeEmpty())
		})
	}
}

// usingAClient returns an operator whose handler does something with a client.
func usingAClient() *kopf.Registry {
	registry := kopf.NewRegistry()
	registry.OnCreate(examples, func(ctx context.Context, c *kopf.Change) error {
		c.SetResult("done")
		var all corev1.ServiceAccountList
		if err := c.Client().List(ctx, &all, client.InNamespace(c.Namespace())); err != nil {
			return err
		}
		return c.Client().Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace(), Name: c.Name()}})
	}, kopf.ID("create"))
	return registry
}
