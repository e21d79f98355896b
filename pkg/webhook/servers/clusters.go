package servers

import "github.com/kopf-go/kopf/pkg/settings"

// The names by which the machine of a developer is called from a cluster that runs
// on it, in containers or in a virtual machine.
//
// Specification: the classes WebhookK3dServer, WebhookMinikubeServer.
const (
	K3dHost           = "host.k3d.internal"
	MinikubeHost      = "host.minikube.internal"
	DockerDesktopHost = "host.docker.internal"
)

// K3d is a server for a cluster of K3d or K3s on the same machine. Like Minikube
// and DockerDesktop, it listens on all addresses unless the server has one.
func K3d(s Server) settings.AdmissionServer { return s.withHost(K3dHost) }

// Minikube is a server for a cluster of Minikube on the same machine.
func Minikube(s Server) settings.AdmissionServer { return s.withHost(MinikubeHost) }

// DockerDesktop is a server for the cluster of Docker Desktop on the same machine.
func DockerDesktop(s Server) settings.AdmissionServer { return s.withHost(DockerDesktopHost) }

// withHost is the server under a name from outside, which its own name overrides.
func (s Server) withHost(host string) Server {
	if s.Host == "" {
		s.Host = host
	}
	if s.Addr == "" {
		s.Addr = allAddresses
	}
	return s
}
