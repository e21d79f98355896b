package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/hack/envtest/assets"
	"github.com/kopf-go/kopf/internal/controlplane"
)

// The values of -cluster.
const (
	temporary = "temporary"
	current   = "current"
)

// target is the cluster to run against: a temporary one, or the user's.
type target struct {
	config     *rest.Config
	kubeconfig string // for the operator; empty: the default rules apply
	namespace  string // for samples without a namespace
	own        *controlplane.ControlPlane
}

// findCluster starts a control plane, or with -cluster=current uses the cluster of the
// kubeconfig. It never changes a cluster that the user did not ask for.
func findCluster(ctx context.Context, opts options, example string, out *console) (*target, error) {
	if opts.cluster == temporary {
		return startCluster(ctx, example, out)
	}
	found, err := reach(opts.kubeconfig)
	if err != nil {
		return nil, err
	}
	out.say("USING THE CLUSTER of your kubeconfig: context %q, server %s (%s).", found.context, found.config.Host, found.version)
	return &target{config: found.config, kubeconfig: opts.kubeconfig, namespace: found.namespace}, nil
}

func startCluster(ctx context.Context, example string, out *console) (*target, error) {
	programs, err := assets.Ensure(ctx, out)
	if err != nil {
		return nil, err
	}
	out.say("Starting etcd and kube-apiserver, which takes about five seconds.")
	plane, err := controlplane.Start(programs, controlplane.Options{})
	if err != nil {
		return nil, err
	}
	path, err := writeKubeconfig(example, plane.KubeConfig())
	if err != nil {
		return nil, errors.Join(err, plane.Stop())
	}
	out.say("The control plane is at %s. To use kubectl in another terminal:", plane.Config().Host)
	out.say("    export KUBECONFIG=%s", path)
	return &target{config: plane.Config(), kubeconfig: path, namespace: "default", own: plane}, nil
}

// close stops a temporary control plane.
func (t *target) close(out *console) error {
	if t.own == nil {
		out.say("The definitions and the sample object stay in your cluster.")
		return nil
	}
	out.say("Stopping the control plane.")
	if err := errors.Join(t.own.Stop(), os.Remove(t.kubeconfig)); err != nil {
		return fmt.Errorf("stopping the control plane: %w", err)
	}
	return nil
}
