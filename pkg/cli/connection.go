package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kopf-go/kopf/pkg/settings"
)

// connectTimeout is enough for a cluster on another continent that is busy.
const connectTimeout = 15 * time.Second

// connection are the flags that say which cluster it is.
type connection struct {
	kubeconfig string // the file; empty: as kubectl finds it
	context    string // of the kubeconfig; empty: its current one
}

func (c *connection) define(set *pflag.FlagSet) {
	set.StringVar(&c.kubeconfig, "kubeconfig", "", "the kubeconfig `file` (default: as kubectl does, or the pod's service account)")
	set.StringVar(&c.context, "context", "", "the `context` of the kubeconfig to use (default: its current one)")
}

// Connect finds the cluster as kubectl does, or by the service account of the pod
// where there is no kubeconfig, and asks for its version. The error says what keeps
// them apart. An operator that knows its cluster otherwise need not call it.
func (in Invocation) Connect(ctx context.Context) (*rest.Config, error) {
	return in.connection.connect(ctx)
}

func (c connection) connect(ctx context.Context) (*rest.Config, error) {
	config, err := c.restConfig()
	if err != nil {
		return nil, err
	}
	return config, checkReachable(ctx, config)
}

// Named tells that the command line says which cluster it is.
func (in Invocation) Named() bool { return in.connection != connection{} }

// clientConfig is how kubectl finds the cluster.
func (c connection) clientConfig() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: c.context}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
}

// setLeaseNamespace puts the lease into the namespace of the kubeconfig, or of the pod, unless it
// has one. What is wrong with the kubeconfig is told by whoever connects.
func (c connection) setLeaseNamespace(r *settings.Replicas) {
	if r.LeaseNamespace != "" {
		return
	}
	if namespace, _, err := c.clientConfig().Namespace(); err == nil {
		r.LeaseNamespace = namespace
	}
}

// restConfig finds the cluster without talking to it.
func (c connection) restConfig() (*rest.Config, error) {
	config, err := c.clientConfig().ClientConfig()
	switch {
	case err == nil:
		return config, nil
	case c.kubeconfig != "" || c.context != "":
		return nil, fmt.Errorf("no cluster to connect to, as --kubeconfig and --context say: %w", err)
	default:
		return nil, fmt.Errorf("no cluster to connect to: set KUBECONFIG or use --kubeconfig: %w", err)
	}
}

// checkReachable tells what keeps us from talking to the cluster. One that does not tell its
// version is reached all the same.
func checkReachable(ctx context.Context, config *rest.Config) error {
	short := rest.CopyConfig(config)
	short.Timeout = connectTimeout
	client, err := discovery.NewDiscoveryClientForConfig(short)
	if err != nil {
		return fmt.Errorf("the configuration of the cluster at %s cannot be used: %w", config.Host, err)
	}
	_, err = client.ServerVersionWithContext(ctx)
	switch {
	case err == nil, apierrors.IsForbidden(err):
		return nil
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the cluster at %s does not accept the credentials: log in again, or correct the kubeconfig (%s)", config.Host, apierrors.ReasonForError(err))
	default:
		return describeUnreachable(config.Host, err)
	}
}

// describeUnreachable explains the failure of a request. The address and the method of the
// request, which these errors have, are left out.
func describeUnreachable(host string, err error) error {
	var timeout net.Error
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("the cluster at %s cannot be reached, nothing listens there: is it running, and is this the right kubeconfig? (%w)", host, syscall.ECONNREFUSED)
	case errors.As(err, &name) && name.IsNotFound:
		return fmt.Errorf("the cluster at %s cannot be reached, there is no host of this name: is this the right kubeconfig? (%w)", host, name)
	case errors.As(err, &certificate):
		return fmt.Errorf("the cluster at %s cannot be trusted: is its certificate authority in the kubeconfig? (%w)", host, certificate.Err)
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("the cluster at %s does not answer within %s: is there a way from here to there? (%w)", host, connectTimeout, err)
	default:
		return fmt.Errorf("the cluster at %s cannot be reached: %w", host, err)
	}
}
