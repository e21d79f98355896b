package deployment

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kopf-go/kopf/test/testenv"
)

// Every combination of components that the documents offer can be applied.
func TestOverlaysApply(t *testing.T) {
	w := &world{Cluster: testenv.Start(t, testenv.Options{CRDs: []string{}})}
	// The definitions of other operators have no schema here.
	w.install(t, []*unstructured.Unstructured{
		foreign(t, "monitoring.coreos.com", "servicemonitors", "ServiceMonitor"), foreign(t, "monitoring.coreos.com", "prometheusrules", "PrometheusRule"),
		foreign(t, "cert-manager.io", "issuers", "Issuer"), foreign(t, "cert-manager.io", "certificates", "Certificate"),
	})
	for _, components := range [][]string{
		{},
		{"metrics"},
		{"webhook"},
		{"network-policy"},
		{"metrics", "prometheus"},
		{"webhook", "certmanager"},
		{"page", "network-policy"},
		{"metrics", "webhook", "page", "network-policy", "prometheus", "certmanager"},
	} {
		t.Run(strings.Join(append([]string{"default"}, components...), "+"), func(t *testing.T) {
			w.install(t, manifests(t, withComponents(t, components...)))
			for _, d := range of[appsv1.Deployment](t, "Deployment", manifests(t, withComponents(t, components...))) {
				d.Namespace = "kopf-system"
				w.exists(t, d)
			}
		})
	}
}

// exists expects that the deployment was stored as it is in the manifests.
func (w *world) exists(t *testing.T, want *appsv1.Deployment) {
	t.Helper()
	found := &unstructured.Unstructured{}
	found.SetAPIVersion("apps/v1")
	found.SetKind("Deployment")
	found.SetNamespace(want.Namespace)
	found.SetName(want.Name)
	stored, err := w.Current(found)()
	gomega.NewWithT(t).Expect(err).NotTo(gomega.HaveOccurred())
	got := of[appsv1.Deployment](t, "Deployment", []*unstructured.Unstructured{stored})[0]
	gomega.NewWithT(t).Expect(got.Spec.Template.Spec.Containers[0].Args).To(gomega.Equal(want.Spec.Template.Spec.Containers[0].Args))
}

// foreign returns a definition without a schema.
func foreign(t *testing.T, group, plural, kind string) *unstructured.Unstructured {
	t.Helper()
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": plural + "." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced", "names": map[string]any{"kind": kind, "plural": plural, "singular": strings.ToLower(kind)},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{
				"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			}}},
		},
	}}
}

// With a certificate of cert-manager, the names fit the service, and the files the volume.
func TestCertificateFitsTheService(t *testing.T) {
	g, all := gomega.NewWithT(t), manifests(t, withComponents(t, "webhook", "certmanager"))
	certificate, service := one(t, "Certificate", all), one(t, "Service", all)
	names, _, err := unstructured.NestedStringSlice(certificate.Object, "spec", "dnsNames")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(names).To(gomega.ContainElement(service.GetName() + "." + service.GetNamespace() + ".svc"))
	issuer, _, _ := unstructured.NestedString(certificate.Object, "spec", "issuerRef", "name")
	g.Expect(issuer).To(gomega.Equal(one(t, "Issuer", all).GetName()))
	secret, _, _ := unstructured.NestedString(certificate.Object, "spec", "secretName")
	pod := of[appsv1.Deployment](t, "Deployment", all)[0].Spec.Template.Spec
	g.Expect(pod.Volumes[0].Secret.SecretName).To(gomega.Equal(secret))
	g.Expect(pod.Containers[0].Env).To(gomega.ContainElement(gomega.HaveField("Value", pod.Containers[0].VolumeMounts[0].MountPath)))
}

// The policy opens the ports of the pods, and no others.
func TestPolicyOpensThePorts(t *testing.T) {
	g, all := gomega.NewWithT(t), manifests(t, complete(t))
	opened := map[int32]bool{}
	for _, rule := range of[networkingv1.NetworkPolicy](t, "NetworkPolicy", all)[0].Spec.Ingress {
		for _, port := range rule.Ports {
			g.Expect(port.Port.Type).To(gomega.Equal(intstr.Int))
			opened[port.Port.IntVal] = true
		}
	}
	used := map[int32]bool{}
	for _, port := range of[appsv1.Deployment](t, "Deployment", all)[0].Spec.Template.Spec.Containers[0].Ports {
		used[port.ContainerPort] = true
	}
	g.Expect(opened).To(gomega.Equal(used))
}

// The targets of the Makefile give kubectl the manifests, with the image.
func TestMakeTargetsPassTheManifests(t *testing.T) {
	kubectl := filepath.Join(t.TempDir(), "kubectl")
	if err := os.WriteFile(kubectl, []byte("#!/bin/sh\necho \"# $*\"\ncat\n"), 0o700); err != nil { //nolint:gosec // it must be executable
		t.Fatal(err)
	}
	for target, want := range map[string][]string{
		"install":   {"# apply --server-side -f -", "name: kopfexamples.kopf.dev", "name: clusterkopfpeerings.kopf.dev"},
		"uninstall": {"# delete --ignore-not-found -f -", "name: kopfexamples.kopf.dev"},
		"deploy":    {"# apply --server-side -f -", "image: example.com/mine:v1", "name: kopf-manager-kopfexample-viewer"},
		"undeploy":  {"# delete --ignore-not-found -f -", "name: kopf-manager"},
	} {
		command := exec.CommandContext(t.Context(), "make", "--no-print-directory", target, "IMG=example.com/mine:v1", "KUBECTL="+kubectl) //nolint:gosec // no input from outside
		command.Dir = root(t)
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("make %s: %v\n%s", target, err, output)
		}
		for _, part := range want {
			if !bytes.Contains(output, []byte(part)) {
				t.Errorf("make %s does not pass %q to kubectl", target, part)
			}
		}
	}
}

// make build-installer writes what make deploy applies, docker-build builds the image, and build
// all programs.
func TestMakeTargetsBuild(t *testing.T) {
	dir := t.TempDir()
	tool := filepath.Join(dir, "docker")
	if err := os.WriteFile(tool, []byte("#!/bin/sh\necho \"$@\"\n"), 0o700); err != nil { //nolint:gosec // it must be executable
		t.Fatal(err)
	}
	run := func(arguments ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), "make", append([]string{"--no-print-directory", "IMG=example.com/mine:v1"}, arguments...)...) //nolint:gosec // no input from outside
		command.Dir = root(t)
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("make %s: %v\n%s", arguments, err, output)
		}
		return string(output)
	}
	g := gomega.NewWithT(t)
	g.Expect(run("docker-build", "CONTAINER_TOOL="+tool)).To(gomega.ContainSubstring("build --tag example.com/mine:v1 .\n"))

	installer := filepath.Join(dir, "dist", "install.yaml")
	run("build-installer", "DIST="+filepath.Dir(installer))
	text, err := os.ReadFile(installer) //nolint:gosec // it was just written
	g.Expect(err).NotTo(gomega.HaveOccurred())
	all := objects(t, text)
	g.Expect(of[appsv1.Deployment](t, "Deployment", all)[0].Spec.Template.Spec.Containers[0].Image).To(gomega.Equal("example.com/mine:v1"))
	g.Expect(all).To(gomega.HaveLen(len(manifests(t, "config/default"))))

	bin := filepath.Join(dir, "bin")
	run("build", "BIN="+bin)
	for _, program := range []string{"manager", "kopf", "kubectl-kopf", "kubectl_complete-kopf"} {
		g.Expect(filepath.Join(bin, program)).To(gomega.BeAnExistingFile())
	}
	for _, program := range []string{"manager", "kopf"} {
		output, err := exec.CommandContext(t.Context(), filepath.Join(bin, program), "--help").CombinedOutput() //nolint:gosec // it was just built
		g.Expect(err).NotTo(gomega.HaveOccurred(), string(output))
		g.Expect(string(output)).To(gomega.ContainSubstring("explain"))
	}
}
