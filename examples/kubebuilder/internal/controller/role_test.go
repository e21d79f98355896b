package controller_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/envtest/komega"

	webv1 "github.com/kopf-go/kopf/examples/kubebuilder/api/v1"
)

// The service account of config/rbac, in the namespace of its bindings.
const (
	accountNamespace = "system"
	accountName      = "system:serviceaccount:" + accountNamespace + ":controller-manager"
)

// configurationName is the name of the webhook configurations in the role.
const configurationName = "sites-web.example.com"

var _ = Describe("The role", func() {
	It("is enough for a site with its children", func(ctx SpecContext) {
		komega.SetClient(k8sClient)
		site := &webv1.Site{ObjectMeta: newMeta(ctx), Spec: webv1.SiteSpec{Message: "Hello"}}
		Expect(k8sClient.Create(ctx, site)).To(Succeed())
		Eventually(komega.Object(site)).Should(HaveField("Status.URL", Not(BeEmpty())))
		// The first state is handled now, so this is an update.
		Eventually(komega.Update(site, func() { site.Spec.Message = "Goodbye" })).Should(Succeed())
		config := &corev1.ConfigMap{ObjectMeta: childOf(site)}
		Eventually(komega.Object(config)).Should(HaveField("Data", HaveKeyWithValue("index.html", "Goodbye")))
		for _, child := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}} {
			Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(site), child)).To(Succeed())
		}
		Expect(accountRequests.with(http.StatusCreated)).To(ContainElement(ContainSubstring("POST /api/v1/namespaces/" + site.Namespace + "/services")))
	})

	It("permits nothing else", func(ctx SpecContext) {
		mine, err := client.New(rest.CopyConfig(unrecorded), client.Options{Scheme: scheme.Scheme})
		Expect(err).NotTo(HaveOccurred())
		site := &webv1.Site{ObjectMeta: newMeta(ctx), Spec: webv1.SiteSpec{Message: "Hello"}}
		Expect(mine.Create(ctx, site)).To(Satisfy(apierrors.IsForbidden))
		Expect(mine.List(ctx, &corev1.SecretList{})).To(Satisfy(apierrors.IsForbidden))
		Expect(mine.Delete(ctx, &corev1.ConfigMap{ObjectMeta: childOf(site)})).To(Satisfy(apierrors.IsForbidden))
		foreign := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}}
		Expect(mine.Create(ctx, foreign)).To(Satisfy(apierrors.IsForbidden))
	})
})

// The specs have used the manager for everything that it does.
var _ = AfterSuite(func() {
	Expect(accountRequests.with(http.StatusForbidden, http.StatusUnauthorized)).To(BeEmpty(), "the role lacks permissions")
})

// installRoles creates the roles of the project with their bindings, and what the manager finds
// when it is deployed.
func installRoles(ctx context.Context) {
	GinkgoHelper()
	Expect(k8sClient.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: accountNamespace}})).To(Succeed())
	for _, file := range []string{
		"rbac/service_account.yaml", "rbac/role.yaml", "rbac/role_binding.yaml",
		"rbac/leader_election_role.yaml", "rbac/leader_election_role_binding.yaml", "webhook/role.yaml",
	} {
		for _, object := range objectsIn(filepath.Join("..", "..", "config", file)) {
			Expect(k8sClient.Create(ctx, object)).To(Succeed())
		}
	}
	meta := metav1.ObjectMeta{Name: configurationName}
	Expect(k8sClient.Create(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta})).To(Succeed())
	Expect(k8sClient.Create(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta})).To(Succeed())
}

func objectsIn(path string) (all []*unstructured.Unstructured) {
	GinkgoHelper()
	file, err := os.Open(path)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = file.Close() }()
	for decoder := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return all
		} else {
			Expect(err).NotTo(HaveOccurred())
		}
		if len(object.Object) > 0 {
			all = append(all, object)
		}
	}
}

// unrecorded connects as the service account, for requests that are refused on purpose.
var unrecorded *rest.Config

// newAccount returns a connection as the service account. The API server authorizes it by
// roles, as every API server of envtest does.
func newAccount(testEnv *envtest.Environment) *rest.Config {
	GinkgoHelper()
	user, err := testEnv.AddUser(envtest.User{Name: accountName}, nil)
	Expect(err).NotTo(HaveOccurred())
	unrecorded = rest.CopyConfig(user.Config())
	config := rest.CopyConfig(unrecorded)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err == nil {
				accountRequests.add(request, response.StatusCode)
			}
			return response, err
		})
	})
	return config
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// accountRequests are the requests of the manager.
var accountRequests requests

// requests records what is requested, and the codes of the responses.
type requests struct {
	mu   sync.Mutex
	made []request
}

type request struct {
	line string
	code int
}

func (r *requests) add(sent *http.Request, code int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made = append(r.made, request{fmt.Sprint(sent.Method, " ", sent.URL.Path, " ", code), code})
}

// with returns the requests with one of the codes.
func (r *requests) with(codes ...int) (lines []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.made {
		if slices.Contains(codes, one.code) {
			lines = append(lines, one.line)
		}
	}
	return lines
}
