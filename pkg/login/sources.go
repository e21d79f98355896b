package login

import (
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
)

// Default is the connection of an operator without login handlers: that of
// KUBECONFIG, else that of the pod, else that of ~/.kube/config. All ways to
// authenticate that client-go knows are possible, exec plugins among them.
//
// Specification: Piggybacking, login_via_client.
func Default() (*Connection, error) {
	found, err := config.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("no cluster is configured: %w", err)
	}
	return &Connection{Config: found}, nil
}

// ServiceAccount is the connection of the pod that the operator runs in. Outside of
// a pod it is nil, which for a login handler means that it has nothing to offer.
// The token is read again by client-go whenever Kubernetes has renewed it.
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

// Kubeconfig is the connection of a context of a kubeconfig file. By default, for
// empty arguments, these are the files of KUBECONFIG, or else ~/.kube/config, and the
// current context. If there is no such file, or nothing in it, the connection is
// nil, but for a path that was given.
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
