package servers

import (
	"context"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-go/kopf/pkg/settings"
)

// Auto detects the kind of the cluster and serves as K3d, Minikube or DockerDesktop
// does. For any other cluster it serves as the given server.
//
// Specification: the class WebhookAutoServer.
func Auto(s Server) settings.AdmissionServer {
	return settings.AdmissionServerFunc(func(ctx context.Context, endpoint settings.AdmissionEndpoint) error {
		host, err := detectHost(ctx, endpoint)
		switch {
		case err != nil:
			return err
		case host != "":
			s = s.withHost(host)
		}
		logf.FromContext(ctx).Info("The admission server was chosen for the cluster.", "host", s.withDefaults().Host)
		return s.Serve(ctx, endpoint)
	})
}

// AutoTunnel serves as Auto does if it knows the kind of the cluster. For any other
// cluster it opens the tunnel, which works whatever is between this machine and the
// cluster.
//
// Specification: the class WebhookAutoTunnel.
func AutoTunnel(s Server, tunnel Ngrok) settings.AdmissionServer {
	return settings.AdmissionServerFunc(func(ctx context.Context, endpoint settings.AdmissionEndpoint) error {
		host, err := detectHost(ctx, endpoint)
		switch {
		case err != nil:
			return err
		case host == "":
			logf.FromContext(ctx).Info("The cluster is not known to run on this machine: admission reviews come through a tunnel.")
			return tunnel.Serve(ctx, endpoint)
		}
		logf.FromContext(ctx).Info("The admission server was chosen for the cluster.", "host", host)
		return s.withHost(host).Serve(ctx, endpoint)
	})
}
