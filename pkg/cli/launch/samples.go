package launch

import (
	"context"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/manifests"
)

// WithSamples returns a function that starts a cluster by another one, and creates the objects in files and folders
// there.
func WithSamples(start StartCluster, paths []string) StartCluster {
	return func(ctx context.Context, definitions []string, log io.Writer) (*Cluster, error) {
		samples, err := manifests.Read(paths...)
		if err != nil {
			return nil, fmt.Errorf("the samples cannot be read: %w", err)
		}
		cluster, err := start(ctx, definitions, log)
		if err != nil {
			return nil, err
		}
		if err := create(ctx, cluster.Kubeconfig, samples, log); err != nil {
			return nil, errors.Join(err, cluster.Stop())
		}
		return cluster, nil
	}
}

// create creates objects in a cluster. If they have no namespace, and need one, it is "default".
func create(ctx context.Context, kubeconfig string, objects []*unstructured.Unstructured, log io.Writer) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	writer, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	for _, object := range objects {
		name := object.GetKind() + " " + object.GetName()
		namespaced, err := writer.IsObjectNamespaced(object)
		if err == nil {
			if namespaced && object.GetNamespace() == "" {
				object.SetNamespace("default")
			}
			err = writer.Create(ctx, object)
		}
		if err != nil {
			return fmt.Errorf("creating the sample %s: %w", name, err)
		}
		_, _ = fmt.Fprintf(log, "kopf: Created the sample %s.\n", name)
	}
	return nil
}
