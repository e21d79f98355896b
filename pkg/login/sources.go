package login

import (
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
)

// Default returns the connection of an operator without login handlers: from KUBECONFIG,
// else from the service account of the pod, else from ~/.kube/config. It supports all
// authentication methods of client-go, including exec plugins.
//
// Specification: Piggybacking, login_via_client.
func Default() (*Connection, error) {
	found, err := config.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("no cluster is configured: %w", err)
	}
	return &Connection{Config: found}, nil
}

// ServiceAccount returns the connection of the pod in which the operator runs. Outside of
// a pod it returns nil, which a login handler can return in turn. client-go reads the
// token again after Kubernetes has renewed it.
//
// Specification: login_with_service_account.
func ServiceAccount() (*Connection, error) {
	found, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the service account of the pod cannot be used: %w", err)
	}
	return &Connection{Config: found}, nil
}

// Kubeconfig returns the connection of a context of a kubeconfig file. An empty path means
// the files of KUBECONFIG, or else ~/.kube/config; an empty context means the current one.
// With an empty path, Kubeconfig returns nil if there is no file, or if it is empty.
//
// Specification: login_with_kubeconfig.
func Kubeconfig(path, context string) (*Connection, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	content, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig cannot be read: %w", err)
	}
	if path == "" && api.IsConfigEmpty(content) {
		return nil, nil
	}
	found, err := clientcmd.NewNonInteractiveClientConfig(*content, context, &clientcmd.ConfigOverrides{}, rules).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig cannot be used: %w", err)
	}
	return &Connection{Config: found}, nil
}
