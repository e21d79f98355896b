package fidelity

import (
	"context"
	"testing"

	"github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// The control plane that users start is one of their own.
func TestClusterOfTheKit(t *testing.T) {
	config := kopftest.Cluster(t, "../../../examples/crd")
	called := make(chan string, 1)
	r := kopf.NewRegistry()
	r.OnCreate(kopf.Resource("kopfexamples"), func(_ context.Context, c *kopf.Change) error {
		called <- c.Name()
		return nil
	}, kopf.ID("create"))
	kopftest.Run(t, config, r)
	objects, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	object := kopftest.Object(`{apiVersion: kopf.dev/v1, kind: KopfExample, metadata: {name: one, namespace: default}, spec: {}}`)
	if err := objects.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	gomega.NewWithT(t).Eventually(called).Should(gomega.Receive(gomega.Equal("one")))
}
