package controller_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest/komega"

	webv1 "github.com/kopf-go/kopf/examples/kubebuilder/api/v1"
	"github.com/kopf-go/kopf/examples/kubebuilder/internal/controller"
)

var _ = Describe("A site", func() {
	var site *webv1.Site

	BeforeEach(func(ctx SpecContext) {
		komega.SetClient(k8sClient)
		site = &webv1.Site{ObjectMeta: newMeta(ctx), Spec: webv1.SiteSpec{Message: "Hello"}}
	})

	It("is completed with defaults", func(ctx SpecContext) {
		Expect(k8sClient.Create(ctx, site)).To(Succeed())
		Expect(site.Spec.Image).To(Equal(controller.DefaultImage))
		Expect(site.Spec.Replicas).To(HaveValue(BeEquivalentTo(1)))
	})

	It("is rejected with an image that can change", func(ctx SpecContext) {
		site.Spec.Image = "web-server:latest"
		Expect(k8sClient.Create(ctx, site)).To(MatchError(ContainSubstring("needs a tag other than latest")))
	})

	It("gets its children, and changes them", func(ctx SpecContext) {
		Expect(k8sClient.Create(ctx, site)).To(Succeed())
		config := &corev1.ConfigMap{ObjectMeta: childOf(site)}
		deployment := &appsv1.Deployment{ObjectMeta: childOf(site)}
		service := &corev1.Service{ObjectMeta: childOf(site)}
		Eventually(komega.Object(site)).Should(HaveField("Status.URL", "http://"+site.Name+"."+site.Namespace))
		for _, child := range []client.Object{config, deployment, service} {
			Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(site), child)).To(Succeed())
			Expect(metav1.IsControlledBy(child, site)).To(BeTrue())
		}
		Expect(config.Data).To(HaveKeyWithValue("index.html", "Hello"))

		// The operator writes to the site, too: repeat the update after a conflict.
		Eventually(komega.Update(site, func() { site.Spec.Message = "Goodbye" })).Should(Succeed())
		Eventually(komega.Object(config)).Should(HaveField("Data", HaveKeyWithValue("index.html", "Goodbye")))
	})

	It("reports how many pods are ready", func(ctx SpecContext) {
		Expect(k8sClient.Create(ctx, site)).To(Succeed())
		deployment := &appsv1.Deployment{ObjectMeta: childOf(site)}
		Eventually(komega.Get(deployment)).Should(Succeed())
		// There is no controller of deployments in these tests.
		Eventually(komega.UpdateStatus(deployment, func() {
			deployment.Status.Replicas, deployment.Status.ReadyReplicas = 1, 1
		})).Should(Succeed())
		Eventually(komega.Object(site)).Should(HaveField("Status.ReadyReplicas", BeEquivalentTo(1)))
	})

	It("is scaled by a schedule", func(ctx SpecContext) {
		Expect(k8sClient.Create(ctx, site)).To(Succeed())
		always := &webv1.Schedule{
			ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: "always"},
			Spec:       webv1.ScheduleSpec{Site: site.Name, From: 0, To: 24, Replicas: 3},
		}
		Expect(k8sClient.Create(ctx, always)).To(Succeed())
		Eventually(komega.Object(always)).Should(HaveField("Status.Active", true))
		deployment := &appsv1.Deployment{ObjectMeta: childOf(site)}
		Eventually(komega.Object(deployment)).Should(HaveField("Spec.Replicas", HaveValue(BeEquivalentTo(3))))
	})
})

// newMeta returns the metadata of a site in a new namespace.
func newMeta(ctx SpecContext) metav1.ObjectMeta {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "site-"}}
	Expect(k8sClient.Create(ctx, namespace)).To(Succeed())
	return metav1.ObjectMeta{Namespace: namespace.Name, Name: "hello"}
}

func childOf(site *webv1.Site) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name}
}
