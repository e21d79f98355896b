package release

import (
	"context"
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/cli/release"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/storage"
	"github.com/kopf-go/kopf/test/operators"
)

// On request, the startup handlers of the program say what it stores. A dry run lets them write
// nothing; their cleanup handlers follow in any case.
func TestStartupHandlersSayWhatIsReleased(t *testing.T) {
	s := newScene(t, true)
	const mine = "my-op.example.com"
	s.create(2, func(obj *unstructured.Unstructured) {
		annotations := theirs()
		annotations[mine+"/last-handled-configuration"], annotations[mine+"/fn"] = "{}", open
		obj.SetAnnotations(annotations)
		obj.SetFinalizers([]string{"example.com/first", mine + "/held", "example.com/last"})
	})
	calls := &operators.Calls{}
	s.registry.OnStartup(func(ctx context.Context, c *kopf.Startup) error {
		persistence := &c.Settings().Persistence
		persistence.Finalizer = mine + "/held"
		persistence.DiffBase, persistence.Progress = storage.AnnotationsDiffBase{Prefix: mine}, storage.AnnotationsProgress{Prefix: mine}
		err := c.Client().Create(ctx, &corev1.ConfigMap{ObjectMeta: apimeta.ObjectMeta{Namespace: s.namespace, GenerateName: "made-"}})
		calls.Note("startup wrote %t", err == nil)
		return nil
	}, kopf.ID("start"))
	s.registry.OnCleanup(func(context.Context, *kopf.Activity) error {
		calls.Note("cleanup")
		return nil
	}, kopf.ID("end"))

	s.Expect(s.command("release", "--all", "--operator-stopped").err).To(gomega.MatchError(gomega.And(
		gomega.HavePrefix("the startup handler start (release/startup_test.go:"), gomega.ContainSubstring("add --run-startup"))))
	s.Expect(calls.All()).To(gomega.BeEmpty())
	dry := s.command("release", "--all", "--operator-stopped", "--run-startup", "--dry-run")
	s.Expect(dry.err).NotTo(gomega.HaveOccurred())
	s.Expect(dry.out).To(gomega.HavePrefix("things." + s.resource.Group + ": 2 of 2 objects would be released, 2 from the finalizer\n  ! the finalizer example.com/first of another controller is on 2 objects: "))
	s.Expect(calls.All()).To(gomega.Equal([]string{"startup wrote false", "cleanup"}))

	done := s.command("release", "--all", "--operator-stopped", "--run-startup")
	s.Expect(done.err).NotTo(gomega.HaveOccurred())
	s.Expect(done.out).To(gomega.HavePrefix("things." + s.resource.Group + ": 2 of 2 objects were released, 2 from the finalizer\n  ! the finalizer example.com/first of another controller is on 2 objects: "))
	s.Expect(calls.All()[2:]).To(gomega.Equal([]string{"startup wrote true", "cleanup"}))
	s.expectReleased(2)
	made := &corev1.ConfigMapList{}
	s.Expect(cluster.Client().List(t.Context(), made, client.InNamespace(s.namespace))).To(gomega.Succeed())
	s.Expect(made.Items).To(gomega.ContainElement(gomega.HaveField("Name", gomega.HavePrefix("made-"))))
}

// Names of others can begin with ours, or end with them.
func TestNamesThatContainOursStay(t *testing.T) {
	s := newScene(t, true)
	const mine = "op.example.com"
	others := map[string]string{
		"my-" + mine + "/fn": open, "my." + mine + "/last-handled-configuration": "{}", mine + ".other.org/fn": open,
		mine + ".other.org/last-handled-configuration": "{}", "my." + mine + "/kopf-managed": "yes", "my." + mine + "/request-retry": "1 fn",
		mine + "/last-handled-configurations": "{}", mine + "/request-retry-more": "1 fn", mine + "/kopf-managed-by": "me", mine + "/fn-more": "x",
	}
	finalizers := []string{mine + "/held-more", "my." + mine + "/held", mine + ".other.org/held"}
	s.create(1, func(obj *unstructured.Unstructured) {
		annotations := map[string]string{mine + "/last-handled-configuration": "{}", mine + "/fn": open, mine + "/request-retry": "1 fn"}
		for key, value := range others {
			annotations[key] = value
		}
		obj.SetAnnotations(annotations)
		obj.SetFinalizers(append([]string{mine + "/held"}, finalizers...))
	})
	_, err := s.release(t.Context(), cluster.Config(), func(o *release.Options) { o.Finalizer, o.Prefixes = mine+"/held", []string{mine} })
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(s.all()[0].GetAnnotations()).To(gomega.Equal(others))
	s.Expect(s.all()[0].GetFinalizers()).To(gomega.Equal(finalizers))
}

// The ids of the handlers fn and gone begin other ids, which are those of another operator.
func TestIDsThatBeginWithOursAreForeign(t *testing.T) {
	s := newScene(t, true)
	s.create(1, func(obj *unstructured.Unstructured) {
		annotations := obj.GetAnnotations()
		annotations[prefix+"fn2"], annotations[prefix+"gone-too"] = open, open
		obj.SetAnnotations(annotations)
	})
	s.expectRefused(gomega.ContainSubstring("fn2 (objects: 1), gone-too (objects: 1); if it does not, add --also-ids fn2,gone-too"))
	s.expectRefused(gomega.ContainSubstring("gone-too (objects: 1)"), func(o *release.Options) { o.AlsoIDs = []string{"fn2"} })
}

// A dry run says which objects would disappear.
func TestADryRunOfAbandonedDeletions(t *testing.T) {
	s := newScene(t, true)
	s.create(2, func(obj *unstructured.Unstructured) { obj.SetFinalizers([]string{finalizer}) })
	s.Expect(s.objects.Delete(t.Context(), "a00001", apimeta.DeleteOptions{})).To(gomega.Succeed())
	abandon := func(o *release.Options) { o.AbandonDeletions = true }
	dry, err := s.release(t.Context(), cluster.Config(), abandon, dryRun)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(s.all()).To(gomega.HaveLen(2))
	done, err := s.release(t.Context(), cluster.Config(), abandon)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(s.all()).To(gomega.HaveLen(1))
	dry.DryRun = false
	s.Expect(done).To(gomega.Equal(dry))
	s.Expect(done.Resources[0].Abandoned).To(gomega.Equal(1))
}
