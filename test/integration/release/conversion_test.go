package release

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// Without the conversion, the API server would cut objects of several versions without a word.
func TestConversionIsRemovedWhenNoObjectNeedsIt(t *testing.T) {
	s := newScene(t, false)
	same := func(context.Context, *kopf.Conversion) error { return nil }
	s.registry.OnConvert(s.things(), "v1", "v2", same)
	s.registry.OnConvert(s.things(), "v2", "v1", same)
	s.settings.Admission.Managed = s.namespace + ".kopf.dev"
	read := func() *apiextensionsv1.CustomResourceDefinition {
		found := &apiextensionsv1.CustomResourceDefinition{}
		s.Expect(cluster.Client().Get(t.Context(), client.ObjectKeyFromObject(s.definition), found)).To(gomega.Succeed())
		return found
	}
	update := func(change func(d *apiextensionsv1.CustomResourceDefinition)) {
		s.Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			found := read()
			change(found)
			return cluster.Client().Update(t.Context(), found)
		})).To(gomega.Succeed())
	}
	update(func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Versions = testenv.Definition(s.resource.Group, "things", "Thing", "v1", "v2").Spec.Versions
		d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/convert/" + d.Name)},
			ConversionReviewVersions: []string{"v1"},
		}}
	})
	kept, err := s.release(t.Context(), cluster.Config())
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(kept.Left).To(gomega.ContainElement(gomega.SatisfyAll(
		gomega.ContainSubstring("The conversion in the definition "+s.definition.Name+": its objects are served as v1, v2"), gomega.ContainSubstring("Migrate the objects"),
	)))
	s.Expect(read().Spec.Conversion.Strategy).To(gomega.Equal(apiextensionsv1.WebhookConverter))

	update(func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Versions = d.Spec.Versions[:1] })
	removed := []string{"customresourcedefinitions/" + s.definition.Name + " (spec.conversion)"}
	dry, err := s.release(t.Context(), cluster.Config(), dryRun)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(dry.Webhooks).To(gomega.Equal(removed))
	s.Expect(read().Spec.Conversion.Strategy).To(gomega.Equal(apiextensionsv1.WebhookConverter))
	raced := rest.CopyConfig(cluster.Config())
	var once sync.Once
	raced.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return testenv.RoundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method == http.MethodPatch { // another client writes after the definition was read
				once.Do(func() {
					update(func(d *apiextensionsv1.CustomResourceDefinition) { d.Labels = map[string]string{"raced": "yes"} })
				})
			}
			return next.RoundTrip(request)
		})
	})
	done, err := s.release(t.Context(), raced)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(done.Webhooks).To(gomega.Equal(removed))
	s.Expect(read().Spec.Conversion.Strategy).To(gomega.Equal(apiextensionsv1.NoneConverter))
	s.Expect(read().Labels).To(gomega.HaveKey("raced"))
}
