package controlplane

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kopf-go/kopf/internal/binaries"
)

func TestControlPlaneServesTheRelease(t *testing.T) {
	programs, err := binaries.Find("")
	if err != nil {
		t.Fatal(err)
	}
	plane, err := Start(programs, Options{Flags: map[string]string{"v": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	files := plane.Dir()
	client, err := kubernetes.NewForConfig(plane.Config())
	if err != nil {
		t.Fatal(err)
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv(binaries.Variable) == "" && !strings.Contains(programs, version.GitVersion+"-etcd") {
		t.Errorf("%s reports the version %s", programs, version.GitVersion)
	}
	canListNamespaces(t, plane.KubeConfig())

	if err := plane.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(files); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("files were left in %s", files)
	}
}

func canListNamespaces(t *testing.T, kubeconfig []byte) {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Namespaces().List(context.Background(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}

func TestUnknownFlagIsAnErrorAndLeavesNoFiles(t *testing.T) {
	programs, err := binaries.Find("")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	_, err = Start(programs, Options{Flags: map[string]string{"no-such-flag": "1"}})
	if err == nil || !strings.Contains(err.Error(), "unknown flag: --no-such-flag") {
		t.Errorf("the error must contain the output of kube-apiserver: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
