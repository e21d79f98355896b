package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/hack/envtest/assets"
	"github.com/kopf-go/kopf/hack/envtest/controlplane"
)

// target is the cluster to run against: the user's, or a temporary one.
type target struct {
	config     *rest.Config
	kubeconfig string // for the operator; empty: the default rules apply
	namespace  string // for samples without a namespace
	own        *controlplane.ControlPlane
}

// findCluster returns the cluster of the kubeconfig, or starts a control plane if
// there is no cluster.
func findCluster(ctx context.Context, kubeconfig, example string, out *console) (*target, error) {
	found, err := reach(kubeconfig)
	var nowhere *unreachableError
	switch {
	case err == nil:
		out.say("USING THE CLUSTER of your kubeconfig: context %q, server %s (%s).", found.context, found.config.Host, found.version)
		out.say("If that is not what you want, press Ctrl-C and set KUBECONFIG=/dev/null to use a temporary control plane.")
		return &target{config: found.config, kubeconfig: kubeconfig, namespace: found.namespace}, nil
	case errors.As(err, &nowhere):
		out.say("Your kubeconfig reaches no cluster (%v). Starting a temporary control plane.", nowhere)
		return startCluster(ctx, example, out)
	default:
		return nil, err
	}
}

func startCluster(ctx context.Context, example string, out *console) (*target, error) {
	if _, err := assets.Ensure(ctx, out); err != nil {
		return nil, err
	}
	out.say("Starting etcd and kube-apiserver, which takes about five seconds.")
	plane, err := controlplane.Start(controlplane.Options{})
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
