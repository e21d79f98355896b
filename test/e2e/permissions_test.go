package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/test/audit"
	"github.com/kopf-go/kopf/test/testenv"
)

// withoutRoles contains the examples without a command that prints roles, with the reason. They run
// as an administrator.
var withoutRoles = map[string]string{
	"12-embedded": "the application embeds operators, and has no commands of kopf",
	"typed":       "the program is a manager with flags only; examples/kubebuilder shows how to add the commands, and its tests run it under its role",
}

// clusterWide contains the examples that are also tested for all namespaces: those whose roles
// then have other rules.
var clusterWide = []string{"01-minimal", "02-children", "06-peering", "20-children", "22-rollout"}

// flags are flags of operators that decide what they need.
var flags = map[string][]string{"05-handlers": {"--leader-elect", "--lease-name=handlers"}}

// sharedSuite is what the processes of the suite share.
type sharedSuite struct {
	KubeConfig []byte
	Dir        string // of the programs, of the printed roles, and of the audit log
}

func (s sharedSuite) log() audit.Log { return audit.Log(filepath.Join(s.Dir, "audit.log")) }

// account is the service account of the operator.
func (e *example) account() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: e.namespace}}
}

// permit writes the kubeconfig of the operator: a service account with the permissions that the
// program prints. When the test has ended, no request was refused.
func (e *example) permit(t testing.TB) {
	t.Helper()
	g := gomega.NewWithT(t)
	if withoutRoles[e.name] != "" {
		g.Expect(os.WriteFile(e.kubeconfig(), cluster.KubeConfig(), 0o600)).To(gomega.Succeed())
		return
	}
	g.Expect(cluster.Client().Create(t.Context(), e.account())).To(gomega.Succeed())
	roles := e.printed(t)
	content, err := json.Marshal(roles)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(os.WriteFile(filepath.Join(suite.Dir, "roles-"+e.namespace+".json"), content, 0o600)).To(gomega.Succeed())
	for i := range roles.Items {
		g.Expect(cluster.Client().Create(t.Context(), roles.Items[i].DeepCopy())).To(gomega.Succeed())
	}
	grants := audit.Grants(t, pointers(roles))
	g.Expect(grants).NotTo(gomega.BeEmpty())
	for _, grant := range grants {
		g.Eventually(allows).WithArguments(grant).Should(gomega.BeTrue(), "%v", grant)
	}
	e.connectAsAccount(t)
	t.Cleanup(func() {
		requests := suite.log().Of(t, grants[0].User)
		g.Expect(requests).NotTo(gomega.BeEmpty())
		g.Expect(audit.Refused(requests)).To(gomega.BeEmpty())
	})
}

// printed returns what the command rbac prints for the operator.
func (e *example) printed(t testing.TB) *unstructured.UnstructuredList {
	t.Helper()
	g := gomega.NewWithT(t)
	admin := filepath.Join(e.work, "admin")
	g.Expect(os.WriteFile(admin, cluster.KubeConfig(), 0o600)).To(gomega.Succeed())
	arguments := append([]string{"rbac", "-o", "json", "-n", e.namespace, "--service-account", e.namespace}, e.flags...)
	if !e.wide {
		arguments = append(arguments, "--namespaces", e.namespace)
	}
	command := exec.CommandContext(t.Context(), e.binary(), arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+admin, "TMPDIR="+e.work)
	var log bytes.Buffer
	command.Stderr = &log
	output, err := command.Output()
	g.Expect(err).NotTo(gomega.HaveOccurred(), log.String())
	roles := &unstructured.UnstructuredList{}
	g.Expect(roles.UnmarshalJSON(output)).To(gomega.Succeed(), string(output))
	return roles
}

func pointers(list *unstructured.UnstructuredList) (all []*unstructured.Unstructured) {
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all
}

// allows reports whether the authorizer, which watches roles, knows the grant.
func allows(grant audit.Grant) (bool, error) {
	resource, subresource, _ := strings.Cut(grant.Resource, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: grant.User, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: grant.Namespace, Verb: grant.Verb, Group: grant.Group, Resource: resource, Subresource: subresource, Name: grant.Name,
		},
	}}
	err := cluster.Client().Create(ginkgo.GinkgoTB().Context(), review)
	return review.Status.Allowed, err
}

// connectAsAccount writes a kubeconfig with a token of the service account, and no other credentials.
func (e *example) connectAsAccount(t testing.TB) {
	t.Helper()
	g := gomega.NewWithT(t)
	token := &authenticationv1.TokenRequest{}
	g.Expect(cluster.Client().SubResource("token").Create(t.Context(), e.account(), token)).To(gomega.Succeed())
	here, config := "here", api.NewConfig()
	config.Clusters[here] = &api.Cluster{Server: cluster.Config().Host, CertificateAuthorityData: cluster.Config().CAData}
	config.AuthInfos[here] = &api.AuthInfo{Token: token.Status.Token}
	config.Contexts[here] = &api.Context{Cluster: here, AuthInfo: here, Namespace: e.namespace}
	config.CurrentContext = here
	g.Expect(clientcmd.WriteToFile(*config, e.kubeconfig())).To(gomega.Succeed())
}

// testClusterWide tests the life of an object.
func testClusterWide(t testing.TB, e *example) {
	g := gomega.NewWithT(t)
	e.start(t)
	object := e.create(t)
	g.Eventually(cluster.Current(object)).Should(testenv.HaveAnnotation(lastHandled, gomega.Not(gomega.BeNil())))
	merge(t, object, `{"spec":{"field":"changed"}}`)
	g.Eventually(cluster.Current(object)).Should(testenv.HaveAnnotation(lastHandled, gomega.ContainSubstring("changed")))
	g.Expect(client.IgnoreNotFound(cluster.Client().Delete(t.Context(), object))).To(gomega.Succeed())
	g.Eventually(cluster.Exists(object)).Should(gomega.BeFalse())
}

// elsewhere contains derived permissions that no example uses.
var elsewhere = func() map[audit.Use]audit.Elsewhere {
	const faults = "test/integration/permissions.TestFaultsNeedNothingElse"
	const peers = "Other operators of the same objects. The name must match --peering."
	streamed := audit.Elsewhere{Why: "API servers from 1.34 on list by watches; older ones, and those that are overloaded, do not", Test: faults}
	all := map[audit.Use]audit.Elsewhere{
		{For: peers, Verb: "get"}:  {Why: "another operator does not renew its entry", Test: faults},
		{For: peers, Verb: "list"}: streamed,
		{For: "The handled objects, with the operator's records on them", Verb: "get"}: {Why: "a watch is late, or another client has changed the object", Test: faults},
		{For: "Resources that are installed later are noticed at once.", Verb: "list"}: streamed,
		{For: "Objects that are indexed, or children of others", Verb: "list"}:         streamed,
	}
	for _, children := range []string{"deployments", "services", "configmaps", "persistentvolumeclaims"} {
		all[audit.Use{For: children, Verb: "get"}] = audit.Elsewhere{Why: "a child seems to be deleted, because it has lost its label", Test: "test/integration/deployment.TestDeployments"}
		all[audit.Use{For: children, Verb: "list"}] = streamed
		all[audit.Use{For: children, Verb: "delete"}] = audit.Elsewhere{
			Why: "a handler returns other children than before", Test: "test/integration/ensure.TestChildrenThatAreNoLongerReturnedAreDeleted",
		}
	}
	return all
}()

// checkUsedRoles checks that each derived rule was used by an example for the reason that it gives.
func checkUsedRoles(t testing.TB) {
	t.Helper()
	g := gomega.NewWithT(t)
	audit.CheckTests(t, elsewhere)
	if suiteConfig, _ := ginkgo.GinkgoConfiguration(); suiteConfig.LabelFilter != "" || len(suiteConfig.FocusStrings)+len(suiteConfig.SkipStrings) > 0 {
		return // some examples have not run
	}
	files, err := filepath.Glob(filepath.Join(suite.Dir, "roles-*.json"))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	var grants []audit.Grant
	for _, file := range files {
		content, err := os.ReadFile(file)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		roles := &unstructured.UnstructuredList{}
		g.Expect(roles.UnmarshalJSON(content)).To(gomega.Succeed())
		grants = append(grants, audit.Grants(t, pointers(roles))...)
	}
	requests, err := suite.log().All()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(audit.Unused(grants, requests, elsewhere)).To(gomega.BeEmpty())
}
