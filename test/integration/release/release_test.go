package release

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/cli/release"
	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/storage"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

const many = 1000

func TestManyObjectsAreReleasedWithOneWriteEach(t *testing.T) {
	s := newScene(t, true)
	s.create(many)
	config, requests := counted()
	dry, err := s.release(t.Context(), config, dryRun)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	for _, request := range requests.Requests() {
		s.Expect(request.Method).To(gomega.BeElementOf("GET", testenv.MethodList), request.String())
	}
	s.Expect(text(t, s.all())).To(gomega.ContainSubstring(finalizer))

	requests.Reset()
	var pages, scanned []int
	done, err := s.release(t.Context(), config, func(o *release.Options) {
		o.Scanned = func(_ string, seen int) { scanned = append(scanned, seen) }
		o.Progress = func(_ string, seen, total int) { pages = append(pages, seen, total) }
	})
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(dry.DryRun).To(gomega.BeTrue())
	dry.DryRun = false
	s.Expect(done).To(gomega.Equal(dry))
	s.Expect(done.Resources).To(gomega.HaveLen(1))
	s.Expect(done.Resources[0].Released).To(gomega.Equal(many))
	s.Expect(done.Resources[0].Finalizers).To(gomega.Equal(many))
	s.Expect(requests.Snapshot().Writes("things")).To(gomega.Equal(many))
	s.Expect(scanned).To(gomega.Equal([]int{250, 500, 750, many}))
	s.Expect(pages).To(gomega.Equal([]int{250, many, 500, many, 750, many, many, many}))
	s.expectReleased(many)

	requests.Reset()
	again, err := s.release(t.Context(), config)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(again.Resources[0].Released).To(gomega.BeZero())
	s.Expect(requests.Snapshot().Writes("things")).To(gomega.BeZero())

	s.removeFinalizers()
	s.expectUninstalled()
}

func TestRecordsInTheStatusTakeTwoWrites(t *testing.T) {
	for name, writes := range map[string]int{"a subresource": 2, "no subresource": 1} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, writes == 2)
			s.settings.Persistence.DiffBase, s.settings.Persistence.Progress = storage.StatusDiffBase{}, storage.StatusProgress{}
			s.create(3, func(obj *unstructured.Unstructured) {
				obj.SetAnnotations(theirs())
				obj.Object["status"] = map[string]any{"fn": "result", "kopf": map[string]any{
					"last-handled-configuration": "{}", "progress": map[string]any{"fn": map[string]any{"started": "2026-01-01T00:00:00.000000+00:00", "purpose": "create"}},
				}}
			})
			config, requests := counted()
			_, err := s.release(t.Context(), config)
			s.Expect(err).NotTo(gomega.HaveOccurred())
			s.expectReleased(3)
			for _, obj := range s.all() {
				s.Expect(obj.Object["status"]).To(gomega.Equal(map[string]any{"fn": "result"}))
			}
			s.Expect(requests.Snapshot().Writes("things")).To(gomega.Equal(3 * writes))
		})
	}
}

func TestAnObjectOfARealOperatorIsReleased(t *testing.T) {
	s := newScene(t, true)
	s.create(1, func(obj *unstructured.Unstructured) {
		obj.SetAnnotations(theirs())
		obj.SetFinalizers([]string{"example.com/first", "example.com/last"})
	})
	operator := operators.Start(t, cluster.Config(), s.namespace, s.registry, func(o *kopf.Options) { o.Settings.Peering.Name = s.namespace })
	s.Eventually(func() map[string]string { return s.all()[0].GetAnnotations() }).Should(gomega.HaveKey(prefix + "last-handled-configuration"))
	s.Expect(s.all()[0].GetFinalizers()).To(gomega.ContainElement(finalizer))
	operator.Stop()
	report, err := s.release(t.Context(), cluster.Config())
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(report.Resources[0].Released).To(gomega.Equal(1))
	s.expectReleased(1)
}

func TestHeldDeletionsAreListedAndSkipped(t *testing.T) {
	s := newScene(t, true)
	s.create(3, func(obj *unstructured.Unstructured) { obj.SetFinalizers([]string{finalizer}) })
	s.Expect(s.objects.Delete(t.Context(), "a00001", apimeta.DeleteOptions{})).To(gomega.Succeed())
	report, err := s.release(t.Context(), cluster.Config())
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(report.Resources[0].Held).To(gomega.Equal([]string{s.namespace + "/a00001"}))
	s.Expect(report.Resources[0].Released).To(gomega.Equal(2))
	held, err := s.objects.Get(t.Context(), "a00001", apimeta.GetOptions{})
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(held.GetAnnotations()).To(gomega.HaveKey(prefix + "last-handled-configuration"))
	report, err = s.release(t.Context(), cluster.Config(), func(o *release.Options) { o.AbandonDeletions = true })
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(report.Resources[0].Abandoned).To(gomega.Equal(1))
	s.Expect(s.all()).To(gomega.HaveLen(2))
	s.expectUninstalled()
}

// The objects of a resource and the finalizers that hold them afterwards: the definition cannot be
// deleted before those of others are removed.
func TestWhatHoldsTheObjectsAfterTheReleaseIsNamed(t *testing.T) {
	s := newScene(t, true)
	s.create(3, func(obj *unstructured.Unstructured) {
		if obj.GetName() != "a00000" { // never handled by this operator
			obj.SetAnnotations(nil)
			obj.SetFinalizers([]string{"example.com/slow"})
		}
	})
	s.Expect(s.objects.Delete(t.Context(), "a00002", apimeta.DeleteOptions{})).To(gomega.Succeed())
	const released = "1 of 3 objects were released, 1 from the finalizer\n  2 other objects have nothing of this operator, and are left as they are\n"
	for _, dry := range []bool{true, false} {
		report, err := s.release(t.Context(), cluster.Config(), func(o *release.Options) { o.DryRun = dry })
		s.Expect(err).NotTo(gomega.HaveOccurred())
		said := strings.ReplaceAll(report.Text(inspect.Style{}), "would be", "were")
		s.Expect(strings.ReplaceAll(said, "was released", "were released")).To(gomega.ContainSubstring(released))
		s.Expect(said).To(gomega.ContainSubstring("! the finalizer example.com/slow of another controller is on 2 objects, of which 1 is being deleted: "))
		s.Expect(said).To(gomega.ContainSubstring("To see them: kubectl get things." + s.resource.Group + " -A -o custom-columns="))
	}
	s.Expect(s.all()).To(gomega.HaveLen(3))
	s.removeFinalizers()
	s.expectUninstalled()
}

func TestAnInterruptedReleaseIsRepeated(t *testing.T) {
	const number = 300
	for name, interrupt := range map[string]func(*testenv.Faults, context.CancelFunc) testenv.Fault{
		"the context is canceled": func(_ *testenv.Faults, cancel context.CancelFunc) testenv.Fault {
			return func(*http.Request, http.RoundTripper) (*http.Response, error) { cancel(); return nil, context.Canceled }
		},
		"writes fail": func(*testenv.Faults, context.CancelFunc) testenv.Fault {
			return testenv.Answer(http.StatusForbidden, "Forbidden", 0)
		},
		"the last writes are lost": func(f *testenv.Faults, cancel context.CancelFunc) testenv.Fault {
			return testenv.After(func(*http.Request, http.RoundTripper) (*http.Response, error) { cancel(); return nil, context.Canceled })
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, true)
			s.create(number)
			config := cluster.Config()
			faults := testenv.Strike(config)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var writes atomic.Int64
			faults.Begin(interrupt(faults, cancel), func(r testenv.Request) bool { return r.Method == http.MethodPatch && writes.Add(1) > 100 })
			report, err := s.release(ctx, config)
			s.Expect(err).To(gomega.HaveOccurred())
			s.Expect(report.Resources[0].Released).To(gomega.BeNumerically("<", number))
			faults.Heal()
			_, err = s.release(t.Context(), config)
			s.Expect(err).NotTo(gomega.HaveOccurred())
			s.expectReleased(number)
		})
	}
}

func TestOthersWriteMeanwhile(t *testing.T) {
	for name, fault := range map[string]func(s *scene, once *atomic.Bool) testenv.Fault{
		"a change": func(s *scene, once *atomic.Bool) testenv.Fault {
			return func(sent *http.Request, next http.RoundTripper) (*http.Response, error) {
				_, err := s.objects.Patch(s.t.Context(), "a00000", types.MergePatchType, []byte(`{"spec":{"theirs":1},"metadata":{"finalizers":["example.com/first","`+finalizer+`","example.com/last"]}}`), apimeta.PatchOptions{})
				if err != nil {
					return nil, err
				}
				return next.RoundTrip(sent)
			}
		},
		"a lost answer": func(*scene, *atomic.Bool) testenv.Fault { return testenv.Lose },
		"a lost write":  func(*scene, *atomic.Bool) testenv.Fault { return testenv.Reset },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, true)
			s.create(1)
			config := cluster.Config()
			faults := testenv.Strike(config)
			var once atomic.Bool
			faults.Begin(fault(s, &once), func(r testenv.Request) bool { return r.Method == http.MethodPatch && !once.Swap(true) })
			report, err := s.release(t.Context(), config)
			s.Expect(err).NotTo(gomega.HaveOccurred())
			s.Expect(report.Resources[0].Released).To(gomega.Equal(1))
			s.Expect(report.Resources[0].Failed).To(gomega.BeZero())
			s.expectReleased(1)
		})
	}
	t.Run("a deletion", func(t *testing.T) {
		s := newScene(t, true)
		s.create(1)
		config := cluster.Config()
		faults := testenv.Strike(config)
		var once atomic.Bool
		faults.Begin(func(sent *http.Request, next http.RoundTripper) (*http.Response, error) {
			if err := s.objects.Delete(t.Context(), "a00000", apimeta.DeleteOptions{}); err != nil {
				return nil, err
			}
			return next.RoundTrip(sent)
		}, func(r testenv.Request) bool { return r.Method == http.MethodPatch && !once.Swap(true) })
		report, err := s.release(t.Context(), config)
		s.Expect(err).NotTo(gomega.HaveOccurred())
		s.Expect(report.Resources[0].HeldCount).To(gomega.Equal(1))
		s.Expect(strings.Join(s.all()[0].GetFinalizers(), " ")).To(gomega.ContainSubstring(finalizer))
	})
}

// Webhooks of an operator that does not run reject requests. Those of others stay.
func TestManagedWebhooksAreRemoved(t *testing.T) {
	s := newScene(t, false)
	s.create(1)
	s.registry.OnValidate(s.things(), func(context.Context, *kopf.Admission) error { return nil }, kopf.ID("check"))
	s.settings.Admission.Managed = s.namespace + ".kopf.dev"
	none, url := admissionregistrationv1.SideEffectClassNone, "https://127.0.0.1:1/"
	all := admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{"*"},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{s.resource.Group}, APIVersions: []string{"*"}, Resources: []string{"*"}},
	}
	for _, name := range []string{s.namespace + ".kopf.dev", s.namespace + ".others.dev"} {
		hook := admissionregistrationv1.ValidatingWebhook{
			Name: "check." + name, SideEffects: &none, AdmissionReviewVersions: []string{"v1"}, FailurePolicy: new(admissionregistrationv1.Ignore),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url}, Rules: []admissionregistrationv1.RuleWithOperations{all},
		}
		if name == s.settings.Admission.Managed {
			hook.FailurePolicy = new(admissionregistrationv1.Fail)
		}
		made := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: apimeta.ObjectMeta{Name: name}, Webhooks: []admissionregistrationv1.ValidatingWebhook{hook}}
		s.Expect(cluster.Client().Create(t.Context(), made)).To(gomega.Succeed())
		t.Cleanup(func() { _ = cluster.Client().Delete(context.Background(), made) })
	}
	exists := func(name string) error {
		return cluster.Client().Get(t.Context(), types.NamespacedName{Name: name}, &admissionregistrationv1.ValidatingWebhookConfiguration{})
	}
	removed := []string{"validatingwebhookconfigurations/" + s.settings.Admission.Managed}
	dry, err := s.release(t.Context(), cluster.Config(), dryRun)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(dry.Webhooks).To(gomega.Equal(removed))
	s.Expect(dry.Text(inspect.Style{})).To(gomega.ContainSubstring(removed[0] + " would be removed\n"))
	s.Expect(exists(s.settings.Admission.Managed)).To(gomega.Succeed())
	done, err := s.release(t.Context(), cluster.Config(), func(o *release.Options) { o.All, o.Kinds = false, []string{"things." + s.resource.Group} })
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(done.Webhooks).To(gomega.BeEmpty()) // the operator may go on with other resources
	done, err = s.release(t.Context(), cluster.Config())
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(done.Webhooks).To(gomega.Equal(removed))
	s.Expect(apierrors.IsNotFound(exists(s.settings.Admission.Managed))).To(gomega.BeTrue())
	s.Expect(exists(s.namespace + ".others.dev")).To(gomega.Succeed())
	s.Eventually(func() (int, error) { // the API server stops calling the webhook a little later
		done, err := s.release(t.Context(), cluster.Config())
		if err != nil {
			return -1, err
		}
		return done.Failed(), nil
	}).Should(gomega.BeZero())
	s.expectReleased(1)
}
