package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// connectTimeout is long enough for a busy cluster on another continent.
const connectTimeout = 15 * time.Second

// connection holds the flags that select the cluster, which are those of kubectl.
type connection struct {
	kubeconfig string // the path; empty: the default of kubectl
	overrides  clientcmd.ConfigOverrides
	given      []string // the flags with a value, such as --context
}

func (c *connection) define(set *pflag.FlagSet) {
	set.StringVar(&c.kubeconfig, "kubeconfig", "", "the kubeconfig `file` (default: the same as for kubectl, or the service account of the pod)")
	flags := clientcmd.RecommendedConfigOverrideFlags("")
	flags.CurrentContext.Description = "the `context` of the kubeconfig (default: the current context)"
	// --namespace is the scope of the operator instead. Secrets must not be on a command line.
	// A request timeout would end the watches.
	flags.ContextOverrideFlags.Namespace = clientcmd.FlagInfo{}
	flags.AuthOverrideFlags.Token = clientcmd.FlagInfo{}
	flags.AuthOverrideFlags.Password = clientcmd.FlagInfo{}
	flags.AuthOverrideFlags.Username = clientcmd.FlagInfo{}
	flags.Timeout = clientcmd.FlagInfo{}
	clientcmd.BindOverrideFlags(&c.overrides, set, flags)
}

// complete records which flags have a value.
func (c *connection) complete(set *pflag.FlagSet) {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(connection).define(own)
	own.VisitAll(func(flag *pflag.Flag) {
		if set.Lookup(flag.Name).Value.String() != flag.DefValue {
			c.given = append(c.given, "--"+flag.Name)
		}
	})
}

// arguments returns the flags with a value, for kubectl.
func (c connection) arguments(set *pflag.FlagSet) []string {
	var all []string
	for _, name := range c.given {
		flag := set.Lookup(strings.TrimPrefix(name, "--"))
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			all = append(all, name+"="+value)
		}
	}
	return all
}

// Connect finds the cluster as kubectl does, or by the service account of the pod if there
// is no kubeconfig, and requests its version. The error explains why the cluster cannot be
// reached. Operators with another connection do not need it.
func (in Invocation) Connect(ctx context.Context) (*rest.Config, error) {
	return in.connection.connect(ctx)
}

func (c connection) connect(ctx context.Context) (*rest.Config, error) {
	config, err := c.restConfig()
	if err != nil {
		return nil, err
	}
	if config.BearerTokenFile == serviceAccountToken {
		return config, nil // the API server may be starting, too: the operator waits for it
	}
	return config, checkReachable(ctx, config)
}

// serviceAccountToken is the file with the token of the service account of a pod.
const serviceAccountToken = "/var/run/secrets/kubernetes.io/serviceaccount/token"

// Kubeconfig returns the file that was given by a flag or a variable, or "".
func (in Invocation) Kubeconfig() string { return in.connection.kubeconfig }

// ConnectionFlags returns the flags that select the cluster and have a value, such as
// --kubeconfig.
func (in Invocation) ConnectionFlags() []string { return in.connection.given }

// clientConfig finds the cluster as kubectl does.
func (c connection) clientConfig() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &c.overrides)
}

// restConfig returns the configuration of the cluster, without connecting to it.
func (c connection) restConfig() (*rest.Config, error) {
	config, err := c.clientConfig().ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		err = errors.New(c.whyEmpty(os.Getenv(clientcmd.RecommendedConfigPathEnvVar)))
	}
	switch {
	case err == nil:
		// client-go ignores --as in a pod: the operator must not use other permissions than requested.
		if user := c.overrides.AuthInfo; config.Impersonate.UserName == "" {
			config.Impersonate.UserName = user.Impersonate
			config.Impersonate.UID = user.ImpersonateUID
			config.Impersonate.Groups = user.ImpersonateGroups
		}
		return config, nil
	case len(c.given) > 0:
		return nil, fmt.Errorf("no cluster to connect to with %s: %w", strings.Join(c.given, ", "), err)
	default:
		return nil, fmt.Errorf("no cluster to connect to: set KUBECONFIG or use --kubeconfig: %w", err)
	}
}

// whyEmpty returns why there is no configuration. The library ignores missing files, and names a
// variable that has no effect here.
func (c connection) whyEmpty(variable string) string {
	var missing []string
	paths := slices.DeleteFunc(filepath.SplitList(variable), func(path string) bool { return path == "" })
	for _, path := range paths {
		if _, err := os.Stat(path); err != nil {
			missing = append(missing, path)
		}
	}
	switch {
	case c.kubeconfig != "":
		return fmt.Sprintf("the file %s selects no cluster", c.kubeconfig)
	case len(paths) == 0:
		return fmt.Sprintf("%s does not exist or selects no cluster, and this is no pod with a service account", clientcmd.RecommendedHomeFile)
	case len(missing) > 0:
		return "the file in KUBECONFIG does not exist: " + strings.Join(missing, ", ")
	default:
		return fmt.Sprintf("the file in KUBECONFIG selects no cluster: %s", variable)
	}
}

// checkReachable returns why the cluster cannot be reached. A cluster that forbids the
// request for its version is reachable. The error omits the address and the method of the
// request, which these errors contain.
func checkReachable(ctx context.Context, config *rest.Config) error {
	host := config.Host
	short := rest.CopyConfig(config)
	short.Timeout = connectTimeout
	client, err := discovery.NewDiscoveryClientForConfig(short)
	if err != nil {
		return fmt.Errorf("the configuration of the cluster at %s cannot be used: %w", host, err)
	}
	_, err = client.ServerVersionWithContext(ctx)
	var timeout net.Error
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	switch {
	case err == nil, apierrors.IsForbidden(err):
		return nil
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the cluster at %s rejects the credentials: log in again, or correct the kubeconfig (%s)", host, apierrors.ReasonForError(err))
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("the cluster at %s cannot be reached because nothing listens at that address: is the cluster running, and is this the right kubeconfig? (%w)", host, syscall.ECONNREFUSED)
	case errors.As(err, &name) && name.IsNotFound:
		return fmt.Errorf("the cluster at %s cannot be reached because the host does not exist: is this the right kubeconfig? (%w)", host, name)
	case errors.As(err, &certificate):
		return fmt.Errorf("the certificate of the cluster at %s cannot be verified: does the kubeconfig have its certificate authority? (%w)", host, certificate.Err)
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("the cluster at %s does not respond within %s: does the network allow the connection? (%w)", host, connectTimeout, err)
	default:
		return fmt.Errorf("the cluster at %s cannot be reached: %w", host, err)
	}
}
