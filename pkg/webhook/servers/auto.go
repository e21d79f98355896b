package servers

import (
	"context"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-go/kopf/pkg/settings"
)

// Auto asks the cluster what it is, and is the server for it: K3d, Minikube or
// DockerDesktop. For any other cluster it is the plain server.
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

// AutoTunnel is the Auto server if the cluster is one that it knows, and a tunnel
// otherwise: whatever there is between the machine and the cluster.
//
// Specification: the class WebhookAutoTunnel.
func AutoTunnel(s Server, tunnel Ngrok) settings.AdmissionServer {
	return settings.AdmissionServerFunc(func(ctx context.Context, endpoint settings.AdmissionEndpoint) error {
		host, err := detectHost(ctx, endpoint)
		switch {
		case err != nil:
			return err
		case host == "":
			logf.FromContext(ctx).Info("The cluster is none that could call this machine: admissions come through a tunnel.")
			return tunnel.Serve(ctx, endpoint)
		}
		logf.FromContext(ctx).Info("The admission server was chosen for the cluster.", "host", host)
		return s.withHost(host).Serve(ctx, endpoint)
	})
}
