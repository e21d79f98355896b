package fidelity

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
	"github.com/kopf-go/kopf/test/testenv"
)

// The control plane that users start is one of their own. It calls the admission handlers of an
// operator in the test, as docs/testing.md shows.
func TestClusterOfTheKit(t *testing.T) {
	folder := t.TempDir() // the definitions are in a folder below
	if err := os.CopyFS(filepath.Join(folder, "bases"), os.DirFS("../../../examples/crd")); err != nil {
		t.Fatal(err)
	}
	config := kopftest.Cluster(t, folder)
	r := kopf.NewRegistry()
	called := make(chan string, 1)
	r.OnCreate(kopf.Resource("kopfexamples"), func(_ context.Context, c *kopf.Change) error {
		called <- c.Name()
		return nil
	}, kopf.ID("create"))
	r.OnValidate(kopf.Resource("kopfexamples"), func(_ context.Context, a *kopf.Admission) error {
		if size, _ := a.Spec().Int64("size"); size > 10 {
			return errors.New("the size is limited to 10")
		}
		return nil
	}, kopf.ID("limit"))
	kopftest.Run(t, config, r, func(o *kopf.Options) {
		o.Settings.Admission.Server = servers.Server{Addr: "127.0.0.1"}
		o.Settings.Admission.Managed = "test.kopf.dev"
	})
	objects, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	object := kopftest.Object(`{apiVersion: kopf.dev/v1, kind: KopfExample, metadata: {name: one, namespace: default}, spec: {size: 11}}`)
	if err := objects.Create(t.Context(), object.DeepCopy()); err == nil || !strings.Contains(err.Error(), "limited to 10") {
		t.Errorf("got %v", err)
	}
	object.Object["spec"] = map[string]any{"size": int64(10)}
	if err := objects.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	gomega.NewWithT(t).Eventually(called).Should(gomega.Receive(gomega.Equal("one")))
}

// A test that sets no logger sees nothing of the libraries that start the control plane.
func TestClusterOfTheKitWritesNothingToStandardError(t *testing.T) {
	const variable = "KOPF_TEST_LIBRARIES"
	if os.Getenv(variable) != "" {
		began := time.Now()
		kopftest.Cluster(t)
		klog.Info("from client-go")
		synctest.Test(t, func(*testing.T) { // where a minute takes no time
			time.Sleep(time.Until(began.Add(time.Minute)))
			ctrl.Log.Info("from controller-runtime")
		})
		return
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	command.Env = append(os.Environ(), variable+"=yes", testenv.Server+"="+testenv.InMemory) // the suite needs no other control plane
	var output, errors bytes.Buffer
	command.Stdout, command.Stderr = &output, &errors
	if err := command.Run(); err != nil || errors.Len() > 0 {
		t.Errorf("%v, standard error has %q, and standard output %s", err, &errors, &output)
	}
}
