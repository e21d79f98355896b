package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Cluster is a control plane that was started for an operator.
type Cluster struct {
	// Kubeconfig is the path of the kubeconfig file of an administrator.
	Kubeconfig string
	// Stop stops the control plane and removes its files.
	Stop func() error
}

// StartCluster starts a control plane with the resource definitions in files and folders. It
// writes its progress to log.
type StartCluster func(ctx context.Context, definitions []string, log io.Writer) (*Cluster, error)

// definitionPlaces are the files and folders of a project that may have resource definitions: of
// small projects, and that of kubebuilder, where they are in a folder below.
var definitionPlaces = []string{"crd.yaml", "crds.yaml", "crd", "crds", filepath.Join("config", "crd")}

// Definitions returns the files and folders with resource definitions in some folders. Folders that
// do not exist have none.
func Definitions(folders ...string) []string {
	var found []string
	for _, folder := range folders {
		for _, place := range definitionPlaces {
			path := filepath.Join(folder, place)
			if _, err := os.Stat(path); err == nil && !slices.Contains(found, path) {
				found = append(found, path)
			}
		}
	}
	return found
}

// Connection starts a cluster for an operator, or none if start is nil. It returns the arguments
// that connect the operator to the cluster, and a function that stops it.
func Connection(ctx context.Context, start StartCluster, definitions []string, log io.Writer) ([]string, func() error, error) {
	if start == nil {
		return nil, func() error { return nil }, nil
	}
	for _, path := range definitions {
		if _, err := os.Stat(path); err != nil {
			return nil, nil, fmt.Errorf("the resource definitions cannot be read: %w", err)
		}
	}
	cluster, err := start(ctx, definitions, log)
	if err != nil {
		return nil, nil, err
	}
	if err := ctx.Err(); err != nil { // interrupted while the cluster started
		return nil, nil, errors.Join(err, cluster.Stop())
	}
	return []string{"--kubeconfig=" + cluster.Kubeconfig}, cluster.Stop, nil
}
