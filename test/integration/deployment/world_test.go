package deployment

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/test/audit"
	"github.com/kopf-go/kopf/test/testenv"
)

// world is a cluster with an audit log, and the program of the image.
type world struct {
	*testenv.Cluster
	journal audit.Log
	program string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	// The API server calls services directly, not through a proxy.
	t.Setenv("NO_PROXY", cmp.Or(os.Getenv("NO_PROXY"), os.Getenv("no_proxy"))+",.svc")
	w := &world{journal: audit.Log(filepath.Join(t.TempDir(), "audit.log")), program: image(t)}
	flags, err := w.journal.Flags()
	if err != nil {
		t.Fatal(err)
	}
	w.Cluster = testenv.Start(t, testenv.Options{CRDs: []string{}, Flags: flags})
	// The tests start processes, and wait for leases of killed ones to expire.
	gomega.SetDefaultEventuallyTimeout(2 * time.Minute)
	gomega.SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	return w
}

// install applies objects like kubectl.
func (w *world) install(t *testing.T, all []*unstructured.Unstructured) {
	t.Helper()
	apply := func(object *unstructured.Unstructured) error {
		object = object.DeepCopy()
		return w.Client().Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("kubectl"), client.ForceOwnership)
	}
	for _, object := range all {
		// A definition that has just been applied takes a moment.
		gomega.NewWithT(t).Eventually(apply).WithArguments(object).Should(gomega.Succeed(), "%s %s", object.GetKind(), object.GetName())
	}
}

// token returns a token of a service account, like the one mounted into its pods.
func (w *world) token(t *testing.T, namespace, account string) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	owner := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	if err := w.Client().SubResource("token").Create(t.Context(), owner, request); err != nil {
		t.Fatalf("a token for %s in %s: %v", account, namespace, err)
	}
	return request.Status.Token
}

// kubeconfig returns a file with a token and no other credentials.
func (w *world) kubeconfig(t *testing.T, token string) (path string) {
	t.Helper()
	here, config := "here", api.NewConfig()
	config.Clusters[here] = &api.Cluster{Server: w.Config().Host, CertificateAuthorityData: w.Config().CAData}
	config.AuthInfos[here] = &api.AuthInfo{Token: token}
	config.Contexts[here] = &api.Context{Cluster: here, AuthInfo: here}
	config.CurrentContext = here
	path = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// admits asks the API server whether it would admit the pods of a deployment, which checks the
// pod security standard of the namespace.
func (w *world) admits(t *testing.T, d *appsv1.Deployment) {
	t.Helper()
	template := d.Spec.Template.DeepCopy()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: "tried", Labels: template.Labels}, Spec: template.Spec}
	if err := w.Client().Create(t.Context(), p, client.DryRunAll); err != nil {
		t.Error(err)
	}
}

func (w *world) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := w.Client().Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}
