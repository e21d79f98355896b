package handling

import (
	"context"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// permit creates a role in the namespace of the bench for the user of its operators.
func (b *bench) permit(name string, rules ...rbacv1.PolicyRule) {
	b.t.Helper()
	meta := metav1.ObjectMeta{Namespace: b.namespace, Name: name}
	b.Expect(cluster.Client().Create(b.t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules})).To(gomega.Succeed())
	b.Expect(cluster.Client().Create(b.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: b.namespace}},
	})).To(gomega.Succeed())
}

// A handler wants to write what the role does not permit. It does not fail, because the role can be
// extended. In the meantime, the outcomes of the other handlers are stored.
func TestAMissingPermissionHoldsBackOneHandlerOnly(t *testing.T) {
	t.Parallel()
	rule := func(group, resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	}
	tests := map[string]struct {
		write   func(context.Context, *kopf.Change) error
		missing rbacv1.PolicyRule
		written string // by the handler
	}{
		"for the status": { // the authorizer refuses it
			func(_ context.Context, c *kopf.Change) error { c.SetResult("done"); return nil },
			rule("kopf.dev", "kopfexamples/status", "patch"), "status.forbidden",
		},
		"for references to owners": { // an admission plugin refuses it
			func(ctx context.Context, c *kopf.Change) error {
				owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace(), Name: "owner"}}
				if err := cluster.Client().Create(ctx, owner); err != nil {
					return err
				}
				c.Patch().Set([]any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": owner.Name, "uid": string(owner.UID)}}, "metadata", "ownerReferences")
				return nil
			},
			rule("kopf.dev", "kopfexamples", "delete"), "metadata.ownerReferences",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.config.Impersonate = rest.ImpersonationConfig{UserName: b.namespace, Groups: []string{"system:authenticated"}}
			b.OnCreate(examples, b.noted("first", func(_ context.Context, c *kopf.Change) error {
				c.Patch().Set("yes", "metadata", "labels", "first")
				return nil
			}), kopf.ID("first"))
			b.OnCreate(examples, b.noted("forbidden", test.write), kopf.ID("forbidden"))
			b.OnCreate(examples, b.noted("last", succeed), kopf.ID("last"))
			b.permit("operator", rule("kopf.dev", "kopfexamples", "get", "list", "watch", "patch"), rule("", "events", "create", "patch"))
			user, err := client.New(b.config, client.Options{})
			b.Expect(err).NotTo(gomega.HaveOccurred())
			obj := b.create("one", nil)
			b.Eventually(func() error { return user.Get(t.Context(), client.ObjectKeyFromObject(obj), obj.DeepCopy()) }).Should(gomega.Succeed())
			b.start(func(o *kopf.Options) { o.Settings.Queueing.ErrorDelays = []time.Duration{100 * time.Millisecond} })

			succeeded := gomega.ContainSubstring(`"success":true`)
			b.Eventually(cluster.Current(obj)).Should(gomega.And(
				testenv.HavePath("metadata.labels.first", "yes"),
				testenv.HaveAnnotation(prefix+"first", succeeded), testenv.HaveAnnotation(prefix+"last", succeeded),
			), b.logs.String)
			stored := b.current(obj)
			b.Expect(stored).To(testenv.HaveAnnotation(prefix+"forbidden", nil))
			b.Eventually(b.logged("these handlers wait for a permission (forbidden)", `"failures"=5`)).ShouldNot(gomega.BeEmpty(), b.logs.String)
			b.Expect(b.current(obj).GetResourceVersion()).To(gomega.Equal(stored.GetResourceVersion()), "a retry must write nothing")
			b.Eventually(cluster.Events(obj)).Should(gomega.ContainElement(gomega.And(
				gomega.HavePrefix("Warning ReconcileError: "), gomega.ContainSubstring("these handlers wait for a permission (forbidden)"))))

			b.permit("added", test.missing)
			b.expectHandled(obj)
			b.Expect(b.current(obj)).To(testenv.HavePath(test.written, gomega.Not(gomega.BeEmpty())))
			b.Expect(b.calls.All()).To(gomega.Equal([]string{"first 0", "forbidden 0", "last 0"}))
			b.Expect(b.logs.With("The edit of the handler cannot be written")).To(gomega.BeEmpty())
		})
	}
}
