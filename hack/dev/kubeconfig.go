package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// reachTimeout is long enough for a remote cluster.
const reachTimeout = 5 * time.Second

// found describes a cluster that answers.
type found struct {
	config                      *rest.Config
	context, namespace, version string
}

// unreachable says what to do about a kubeconfig without a cluster that answers.
func unreachable(reason error) error {
	return fmt.Errorf("your kubeconfig reaches no cluster: %w; "+
		"correct KUBECONFIG, or leave CLUSTER=current out for a temporary control plane", reason)
}

// reach asks the cluster of a kubeconfig file, or of the default rules, for its
// version.
func reach(path string) (found, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	raw, err := rules.Load()
	if err != nil {
		return found{}, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if len(raw.Clusters) == 0 {
		return found{}, unreachable(errors.New("it contains no cluster"))
	}
	// The deferred loader would fall back to the cluster that this pod runs in.
	loader := clientcmd.NewDefaultClientConfig(*raw, &clientcmd.ConfigOverrides{})
	config, err := loader.ClientConfig()
	if err != nil {
		return found{}, unreachable(err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return found{}, err
	}
	version, err := askVersion(config)
	return found{config: config, context: raw.CurrentContext, namespace: namespace, version: version}, err
}

func askVersion(config *rest.Config) (string, error) {
	short := rest.CopyConfig(config)
	short.Timeout = reachTimeout
	client, err := discovery.NewDiscoveryClientForConfig(short)
	if err != nil {
		return "", unreachable(err)
	}
	version, err := client.ServerVersion()
	switch {
	case err == nil:
		return version.GitVersion, nil
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		return "", fmt.Errorf("the cluster of your kubeconfig, %s, denies access: %w; "+
			"log in, or leave CLUSTER=current out for a temporary control plane", config.Host, err)
	default:
		return "", unreachable(err)
	}
}

// writeKubeconfig writes a file that only the current user can read, and returns its
// path. Concurrent runs of one example get different files. A file whose cluster does
// not answer is a leftover of a killed run and is replaced.
func writeKubeconfig(example string, content []byte) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "kopf-go", "dev")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	for number := 1; ; number++ {
		path := filepath.Join(dir, example+".kubeconfig")
		if number > 1 {
			path = filepath.Join(dir, fmt.Sprintf("%s-%d.kubeconfig", example, number))
		}
		if _, err := os.Stat(path); err == nil {
			if _, err := reach(path); err == nil {
				continue
			}
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return "", err
			}
		}
		return path, writeNew(path, content)
	}
}

func writeNew(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Close())
}
