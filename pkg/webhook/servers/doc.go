// Package servers are the ways in which API servers reach the admission handlers.
//
//	settings.Admission.Server = servers.Server{Service: &…ServiceReference{…}}  // in the cluster
//	settings.Admission.Server = servers.Server{}                  // on a developer's machine, the cluster beside it
//	settings.Admission.Server = servers.K3d(servers.Server{})     // in K3d; Minikube and DockerDesktop are alike
//	settings.Admission.Server = servers.Auto(servers.Server{})    // one of these, as the cluster says
//	settings.Admission.Server = servers.Ngrok{}                   // through the internet
//	settings.Admission.Server = servers.AutoTunnel(servers.Server{}, servers.Ngrok{})
//	settings.Admission.Server = servers.Mounted{Server: mgr.GetWebhookServer(), …}  // beside other webhooks
//
// Server is what all of them are made of, and what tunnels of one's own are made of,
// too: run one, and publish another address than its own.
//
// # Invariants
//
//   - TLS 1.2 at least, HTTP/1.1 only: API servers use no other for webhooks, and
//     what is not there cannot be attacked.
//   - A request has a limit in size and in time, and ends when its client goes away.
//   - An address is published after it listens, and a CA before it is used.
//   - Serve returns when all that it has started has ended.
//
// Specification: Admission control, "Servers and tunnels", "Authenticate apiservers".
package servers
