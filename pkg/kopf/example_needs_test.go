package kopf_test

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kopf-go/kopf/pkg/kopf"
)

func ExampleNeeds() {
	registry := kopf.NewRegistry() // without one: kopf.OnCreate, kopf.Needs
	registry.OnCreate(kopf.Resource("kopf.dev", "kopfexamples"), func(context.Context, *kopf.Change) error {
		return nil // it creates a ConfigMap, and runs a program in a pod
	}, kopf.ID("create"))
	registry.Needs(kopf.Resource("v1", "configmaps"), "get", "create", "patch")
	registry.Needs(kopf.Resource("v1", "pods"), "list", "exec/create")
	for _, need := range registry.Declarations().Needs() {
		fmt.Println(need.Selector, need.Verbs)
	}
	// Output:
	// v1/configmaps [get create patch]
	// v1/pods [list exec/create]
}

// An operator in a manager logs the rules that its roles lack, and learns the roles that it needs.
func ExampleObservePermissions() {
	config := ctrl.GetConfigOrDie()
	observer := kopf.ObservePermissions(config) // before the manager is made
	manager, err := ctrl.NewManager(config, ctrl.Options{})
	if err != nil {
		panic(err)
	}
	settings := kopf.Settings{Name: "shops"}
	settings.Permissions.LearnFile = "roles.yaml"
	if _, err := kopf.Add(manager, kopf.Options{Registry: kopf.DefaultRegistry, Settings: settings, Permissions: observer}); err != nil {
		panic(err)
	}
}
