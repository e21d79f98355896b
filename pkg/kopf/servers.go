package kopf

import (
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
)

// How API servers reach the admission handlers: see package
// github.com/kopf-go/kopf/pkg/webhook/servers, and the settings of Admission.
type (
	// AdmissionServer receives admission reviews, for Settings.Admission.Server. One's
	// own has one method.
	AdmissionServer = settings.AdmissionServer
	// AdmissionServerFunc is a function as an AdmissionServer.
	AdmissionServerFunc = settings.AdmissionServerFunc
	// AdmissionEndpoint is what an AdmissionServer works with. Its fields:
	// go doc github.com/kopf-go/kopf/pkg/kopf/settings.AdmissionEndpoint
	AdmissionEndpoint = settings.AdmissionEndpoint

	// WebhookServer listens on the machine on which the operator runs. Its fields:
	// go doc github.com/kopf-go/kopf/pkg/webhook/servers.Server
	WebhookServer = servers.Server
	// MountedServer serves beside the other webhooks of a controller-runtime manager.
	// Server and ClientConfig are necessary. Its fields:
	// go doc github.com/kopf-go/kopf/pkg/webhook/servers.Mounted
	MountedServer = servers.Mounted
	// NgrokTunnel lets API servers call through the internet. Its fields:
	// go doc github.com/kopf-go/kopf/pkg/webhook/servers.Ngrok
	NgrokTunnel = servers.Ngrok
)

// K3dServer is a server for a cluster of K3d or K3s on the same machine. It is
// servers.K3d.
func K3dServer(s WebhookServer) AdmissionServer { return servers.K3d(s) }

// MinikubeServer is a server for a cluster of Minikube on the same machine. It is
// servers.Minikube.
func MinikubeServer(s WebhookServer) AdmissionServer { return servers.Minikube(s) }

// DockerDesktopServer is a server for the cluster of Docker Desktop on the same
// machine. It is servers.DockerDesktop.
func DockerDesktopServer(s WebhookServer) AdmissionServer { return servers.DockerDesktop(s) }

// AutoServer is the server for the cluster that there is. It is servers.Auto.
func AutoServer(s WebhookServer) AdmissionServer { return servers.Auto(s) }

// AutoTunnel is the server for the cluster that there is, or a tunnel. It is
// servers.AutoTunnel.
func AutoTunnel(s WebhookServer, tunnel NgrokTunnel) AdmissionServer {
	return servers.AutoTunnel(s, tunnel)
}

// Tunneled is a local server that is called by the address of a tunnel. It is
// servers.Tunneled.
func Tunneled(local, tunnel AdmissionServer) AdmissionServer { return servers.Tunneled(local, tunnel) }
