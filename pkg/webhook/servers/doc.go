// Package servers contains the ways in which API servers reach the admission handlers
// of an operator. Set one of them as Settings.Admission.Server:
//
//	servers.Server{Service: &…ServiceReference{…}}    // the operator runs in the cluster, behind a Service
//	servers.Mounted{Server: mgr.GetWebhookServer(), …} // on the webhook server of a controller-runtime manager
//
//	servers.Server{}                    // for development: the cluster runs on the same machine
//	servers.K3d(servers.Server{})       // for development: K3d or K3s on the same machine
//	servers.Minikube(servers.Server{})  // for development: Minikube
//	servers.DockerDesktop(servers.Server{})
//	servers.Auto(servers.Server{})      // for development: detects which of them the cluster is
//	servers.Ngrok{}                     // for development: any cluster, through the internet
//	servers.AutoTunnel(servers.Server{}, servers.Ngrok{})
//
// All of them are made from Server. To write a tunnel, pass a Server and the tunnel to
// Tunneled. To write a server, implement settings.AdmissionServer.
//
// # Invariants
//
//   - TLS 1.2 or newer, and HTTP/1.1 only: API servers use no other protocol for
//     webhooks, and what is not served cannot be attacked.
//   - Requests are limited in time, and end when their clients disconnect. Their size
//     is limited by the handler that all servers serve.
//   - An address is published after the server listens there, and a CA before a
//     certificate needs it.
//   - Serve returns when everything that it started has ended.
//
// Specification: Admission control, "Servers and tunnels", "Authenticate apiservers".
package servers
