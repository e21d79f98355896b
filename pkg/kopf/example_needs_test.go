package kopf_test

import (
	"context"
	"fmt"

	"github.com/kopf-go/kopf/pkg/kopf"
)

func ExampleNeeds() {
	registry := kopf.NewRegistry() // without one: kopf.OnCreate, kopf.Needs
	registry.OnCreate(kopf.Resource("kopf.dev", "kopfexamples"), func(context.Context, *kopf.Change) error {
		return nil // it creates a ConfigMap, and runs a program in a pod
	}, kopf.ID("create"))
	registry.Needs(kopf.Resource("v1", "configmaps"), "get", "create", "patch")
	registry.Needs(kopf.Resource("v1", "pods"), "list", "exec/create")
	for _, need := range registry.DeclaredNeeds() {
		fmt.Println(need.Selector, need.Verbs)
	}
	// Output:
	// v1/configmaps [get create patch]
	// v1/pods [list exec/create]
}
