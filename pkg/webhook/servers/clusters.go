package servers

import "github.com/kopf-go/kopf/pkg/settings"

// The host names by which a cluster that runs on this machine, in containers or in a
// virtual machine, calls this machine.
//
// Specification: the classes WebhookK3dServer, WebhookMinikubeServer.
const (
	K3dHost           = "host.k3d.internal"
	MinikubeHost      = "host.minikube.internal"
	DockerDesktopHost = "host.docker.internal"
)

// K3d returns a server for a K3d or K3s cluster on the same machine. Unless s sets
// Host and Addr, the cluster calls K3dHost, and the server listens on all addresses.
func K3d(s Server) settings.AdmissionServer { return s.withHost(K3dHost) }

// Minikube returns a server for a Minikube cluster on the same machine. Unless s sets
// Host and Addr, the cluster calls MinikubeHost, and the server listens on all
// addresses.
func Minikube(s Server) settings.AdmissionServer { return s.withHost(MinikubeHost) }

// DockerDesktop returns a server for the cluster of Docker Desktop on the same machine.
// Unless s sets Host and Addr, the cluster calls DockerDesktopHost, and the server
// listens on all addresses.
func DockerDesktop(s Server) settings.AdmissionServer { return s.withHost(DockerDesktopHost) }

// withHost returns the server with the host name, unless it has one.
func (s Server) withHost(host string) Server {
	if s.Host == "" {
		s.Host = host
	}
	if s.Addr == "" {
		s.Addr = allAddresses
	}
	return s
}
