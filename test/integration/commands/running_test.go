package commands

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/test/testenv"
)

// reader returns a file with the token of an account that may ask operators.
func reader(t *testing.T, namespace string) string {
	t.Helper()
	g, request := gomega.NewWithT(t), &authenticationv1.TokenRequest{}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "reader"}}
	meta := metav1.ObjectMeta{Name: namespace}
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/activity"}, Verbs: []string{"get"}}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account.Name}},
	}
	for _, object := range []client.Object{account, role, binding} {
		g.Expect(cluster.Client().Create(t.Context(), object)).To(gomega.Succeed())
	}
	g.Expect(cluster.Client().SubResource("token").Create(t.Context(), account, request)).To(gomega.Succeed())
	path := filepath.Join(t.TempDir(), "token")
	g.Expect(os.WriteFile(path, []byte(request.Status.Token+"\n"), 0o600)).To(gomega.Succeed())
	return path
}

// forwarding makes a pod with the name of this host, and a script that takes the place of kubectl, and leads to the address. It
// returns the PATH with that.
func forwarding(t *testing.T, namespace, address string) (variable string) {
	t.Helper()
	g := gomega.NewWithT(t)
	host, err := os.Hostname()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: host}, Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "main", Image: "main", Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 8443}}},
	}}}
	g.Expect(cluster.Client().Create(t.Context(), pod)).To(gomega.Succeed())
	kubectl := filepath.Join(t.TempDir(), "kubectl")
	g.Expect(os.WriteFile(kubectl, []byte("#!/bin/sh\necho \"Forwarding from "+address+" -> 8443\"\nexec sleep 600\n"), 0o700)).To(gomega.Succeed()) //nolint:gosec // it is a program
	return "PATH=" + filepath.Dir(kubectl) + ":" + os.Getenv("PATH")
}

// The leader is found by its lease. There is no kubelet, so a script takes the place of kubectl, and
// leads to the operator itself.
func testRunning(t *testing.T, p programs) {
	g, namespace, address := gomega.NewWithT(t), cluster.Namespace(t), testenv.FreeAddress(t)
	variables := []string{"KUBECONFIG=" + kubeconfig(t)}
	created(t, namespace, "one")
	operator := start(t, append(variables, "POD_ID=me"), p.example, "-n", namespace, "--standalone", "--leader-elect", "--lease-namespace", namespace, "--metrics", address, "--metrics-secure")
	operator.says("And here we are!")
	operator.says("Serving metrics server") // the server listens later than the first handler runs

	variables = append(variables, forwarding(t, namespace, address))
	token := reader(t, namespace)
	explain := []string{"explain", "kopfexample/one", "-n", namespace, "--running", "--operator-namespace", namespace}
	g.Eventually(func() string { return ask(t, variables, p.example, append(explain, "--token-file", token)...) }).Should(gomega.And(
		gomega.ContainSubstring("Now, according to the operator at https://"+address+"\n"),
		gomega.ContainSubstring("  - Nothing is due for the object.\n")))

	forgotten := start(t, variables, p.example, explain...)
	forgotten.ends(2)
	g.Expect(forgotten.log()).To(gomega.ContainSubstring("--running needs --token-file with a token that the operator accepts: kubectl create token SERVICEACCOUNT > FILE\nTry "))
}

// The replica that handles an object is found by the lease of its shard.
func testShards(t *testing.T, p programs) {
	g, namespace, address := gomega.NewWithT(t), cluster.Namespace(t), testenv.FreeAddress(t)
	variables := []string{"KUBECONFIG=" + kubeconfig(t)}
	created(t, namespace, "one")
	about := []string{"shards", "-n", namespace, "--lease-name", "minimal"}
	g.Expect(ask(t, variables, p.example, about...)).To(gomega.HavePrefix(namespace + "/minimal\n  The lease does not exist: "))
	operator := start(t, variables, p.example, "-n", namespace, "--standalone", "--shards", "4", "--lease-name", "minimal", "--lease-namespace", namespace, "--metrics", address, "--metrics-secure")
	operator.says("And here we are!")
	operator.says("Serving metrics server")
	g.Eventually(func() string { return ask(t, variables, p.example, about...) }).Should(gomega.And(
		gomega.HavePrefix(namespace+"/minimal\n  The replicas divide the objects into 4 shards by uid. They have renewed the lease "),
		gomega.ContainSubstring(" holds 4 shards: 0-3; renewed "), gomega.ContainSubstring("ask them by --running.\n")))
	g.Expect(ask(t, variables, p.example, append(about, "-o", "json")...)).To(gomega.ContainSubstring(`"division": "4 shards by uid",`))

	variables = append(variables, forwarding(t, namespace, address))
	token := reader(t, namespace)
	asked := slices.Concat(about, []string{"--running", "--token-file", token})
	g.Eventually(func() string { return ask(t, variables, p.example, asked...) }).Should(gomega.And(
		gomega.MatchRegexp(`(?m)^  - \d: .*; 1 object$`), gomega.Not(gomega.ContainSubstring("Notes"))))
	g.Expect(ask(t, variables, p.example, append(asked, "--endpoint", "https://"+address)...)).To(gomega.MatchRegexp(`(?m)^  - \d: .*; 1 object$`))
	g.Expect(ask(t, variables, p.example, "explain", "kopfexample/one", "-n", namespace, "--running", "--operator-namespace", namespace, "--lease-name", "minimal", "--token-file", token)).To(gomega.And(
		gomega.ContainSubstring("Now, according to the operator at https://"+address+"\n  - The object is in shard "), gomega.ContainSubstring("  - Nothing is due for the object.\n")))
	forgotten := start(t, variables, p.example, append(about, "--running")...)
	forgotten.ends(2)
	g.Expect(forgotten.log()).To(gomega.ContainSubstring("--running needs --token-file"))
}
