package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/kopf-go/kopf/internal/binaries"
	"github.com/kopf-go/kopf/internal/controlplane"
	"github.com/kopf-go/kopf/internal/manifests"
	"github.com/kopf-go/kopf/pkg/cli/launch"
)

// startCluster starts a control plane, whose programs it builds on first use, and installs the
// resource definitions.
func startCluster(ctx context.Context, paths []string, log io.Writer) (*launch.Cluster, error) {
	ctrllog.SetLogger(logr.Discard()) // envtest logs through it, and complains if there is none
	definitions, err := manifests.Definitions(paths...)
	if err != nil {
		return nil, fmt.Errorf("the resource definitions in %s cannot be read: %w. Use --crds to name the files or folders of your resources instead", strings.Join(paths, ", "), err)
	}
	programs, err := binaries.Find("")
	if errors.Is(err, binaries.ErrMissing) {
		programs, err = binaries.Build(ctx, binaries.Newest(), log)
	}
	if err != nil {
		return nil, err
	}
	say(log, "Starting kube-apiserver and etcd, which takes about five seconds.")
	plane, err := controlplane.Start(programs, controlplane.Options{})
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(plane.Dir(), "kubeconfig")
	err = os.WriteFile(kubeconfig, plane.KubeConfig(), 0o600)
	if err == nil {
		err = install(plane, paths, definitions, log)
	}
	if err != nil {
		return nil, errors.Join(err, plane.Stop())
	}
	say(log, "The cluster is at %s. It has no nodes: pods do not run there. For kubectl in another terminal:", plane.Config().Host)
	say(log, "    export KUBECONFIG=%s", kubeconfig)
	return &launch.Cluster{Kubeconfig: kubeconfig, Stop: func() error {
		say(log, "Stopping the cluster, and removing its files.")
		return plane.Stop()
	}}, nil
}

// install installs the definitions that were found in the paths.
func install(plane *controlplane.ControlPlane, paths []string, definitions []manifests.Definition, log io.Writer) error {
	from := strings.Join(paths, ", ")
	if len(definitions) == 0 {
		reason := "there is neither config/crd nor crd.yaml"
		if len(paths) > 0 {
			reason = "there are none in " + from
		}
		say(log, "No resource definitions are installed, because %s. Name them by --crds.", reason)
		return nil
	}
	installed, err := envtest.InstallCRDs(plane.Config(), envtest.CRDInstallOptions{Paths: manifests.Files(definitions)})
	if err != nil {
		return fmt.Errorf("installing the resource definitions in %s: %w", from, err)
	}
	names := make([]string, len(installed))
	for i, definition := range installed {
		names[i] = definition.Name
	}
	slices.Sort(names)
	say(log, "Installed resource definitions from %s: %s.", from, strings.Join(names, ", "))
	return nil
}

func say(log io.Writer, format string, values ...any) {
	_, _ = fmt.Fprintf(log, "kopf: "+format+"\n", values...)
}
