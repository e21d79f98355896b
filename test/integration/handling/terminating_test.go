package handling

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// terminate deletes the namespace of the bench. There is no namespace controller here: the
// test deletes the objects, and the returned function ends the namespace.
func (b *bench) terminate() (end func()) {
	b.t.Helper()
	set, err := kubernetes.NewForConfig(cluster.Config())
	b.Expect(err).NotTo(gomega.HaveOccurred())
	namespaces := set.CoreV1().Namespaces()
	b.Expect(namespaces.Delete(b.t.Context(), b.namespace, metav1.DeleteOptions{})).To(gomega.Succeed())
	b.Eventually(func() bool { // the API server refuses new objects after a moment
		err := cluster.Client().Create(b.t.Context(), testenv.NewObject("KopfExample", b.namespace, "", nil))
		return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
	}).Should(gomega.BeTrue())
	return func() {
		namespace, err := namespaces.Get(b.t.Context(), b.namespace, metav1.GetOptions{})
		b.Expect(err).NotTo(gomega.HaveOccurred())
		namespace.Spec.Finalizers = nil
		_, err = namespaces.Finalize(b.t.Context(), namespace, metav1.UpdateOptions{})
		b.Expect(err).NotTo(gomega.HaveOccurred())
	}
}

// refusedEvents returns how many events the API server has refused.
func (b *bench) refusedEvents() int {
	refused := 0
	for _, request := range b.requests.All() {
		if request.Resource == "events" && request.Status == http.StatusForbidden {
			refused++
		}
	}
	return refused
}

// A deleted namespace exists until its objects are gone, and accepts no new objects, not even
// events. The operator works as usual for the objects that are still there.
func TestObjectsOfATerminatingNamespaceAreHandled(t *testing.T) {
	t.Parallel()
	for name, scope := range map[string]func(namespace string) []string{
		"which is in the scope by its name": func(namespace string) []string { return []string{namespace} },
		"which matches a pattern":           func(namespace string) []string { return []string{namespace + "*"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, repaired, soon := newBench(t), make(chan struct{}), 50*time.Millisecond
			inScope := func(o *kopf.Options) { o.Settings.Scope.Namespaces = scope(b.namespace) }
			role := func(name string) handler.Option {
				return kopf.Labels(map[string]kopf.Matcher{"role": kopf.Equal(name)})
			}
			b.OnDelete(examples, b.noted("held", unless(repaired, kopf.Permanent(errBroken))), kopf.ID("held"), kopf.HoldOnFailure(), role("held"))
			b.OnCreate(examples, b.noted("create", fail(kopf.Temporary(errNotYet, soon))), kopf.ID("create"), role("retried"))
			b.OnDelete(examples, b.noted("delete", failing(2, soon)), kopf.ID("delete"), role("retried"))
			b.Daemon(examples, func(_ context.Context, task *kopf.Task) error {
				b.calls.Note("daemon begins")
				<-task.Stopped()
				b.calls.Note("daemon ends")
				return nil
			}, kopf.ID("daemon"), role("daemon"))
			operator := b.start(inScope)
			objects := map[string]*unstructured.Unstructured{}
			for _, name := range []string{"held", "retried", "daemon"} {
				objects[name] = testenv.NewObject("KopfExample", b.namespace, name, nil)
				objects[name].SetLabels(map[string]string{"role": name})
				b.submit(objects[name])
				b.Eventually(cluster.Current(objects[name])).Should(testenv.HaveFinalizer(finalizer))
			}
			b.Eventually(b.calls.All).Should(gomega.ContainElements("daemon begins", "create 1"))

			end := b.terminate()
			for _, obj := range objects {
				b.remove(obj)
			}
			b.expectGone(objects["retried"])
			b.expectGone(objects["daemon"])
			b.Eventually(cluster.Current(objects["held"])).Should(testenv.HaveAnnotation(prefix+"held", gomega.ContainSubstring(`"failure":true`)))
			b.Expect(b.calls.Of("delete")).To(gomega.Equal([]string{"delete 0", "delete 1", "delete 2"}))
			b.Expect(b.calls.Of("daemon")).To(gomega.Equal([]string{"daemon begins", "daemon ends"}))
			b.Eventually(b.refusedEvents).Should(gomega.BeNumerically(">", 0))

			// The next operator finds nothing else to do.
			operator.Stop()
			b.start(inScope)
			b.expectRest()
			b.Expect(conditionOf(b.current(objects["held"]), "DeletionHeld")).To(gomega.Equal("True HandlerFailed"))
			b.Expect(b.calls.Of("held")).To(gomega.Equal([]string{"held 0"}))
			close(repaired)
			b.patch(objects["held"], `{"metadata":{"annotations":{"`+prefix+`held":null}}}`)
			b.expectGone(objects["held"])
			end()
			b.expectRest()
			for _, trouble := range []string{"cannot be handled now", "cannot be posted", "is lost", "cannot be watched"} {
				b.Expect(strings.Join(b.logs.With(trouble), "\n")).To(gomega.BeEmpty())
			}
		})
	}
}

// The namespace controller deletes such an object soon.
func TestObjectThatIsFirstSeenInATerminatingNamespaceIsHandled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnCreate(examples, b.noted("create", succeed), kopf.ID("create"))
	b.OnDelete(examples, b.noted("delete", succeed), kopf.ID("delete"))
	obj := b.create("one", nil)
	end := b.terminate()
	b.start()
	b.expectHandled(obj)
	b.remove(obj)
	b.expectGone(obj)
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"create 0", "delete 0"}))
	end()
}
