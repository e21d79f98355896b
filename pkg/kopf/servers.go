package kopf

import (
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
)

// Servers through which API servers call the admission handlers, for
// Settings.Admission.Server. Servers and tunnels for development are in package
// github.com/kopf-go/kopf/pkg/webhook/servers.
type (
	// AdmissionServer receives admission reviews. To write a server, implement its one
	// method.
	AdmissionServer = settings.AdmissionServer
	// AdmissionServerFunc is a function as an AdmissionServer.
	AdmissionServerFunc = settings.AdmissionServerFunc
	// AdmissionEndpoint is the argument of an AdmissionServer. Its fields:
	// go doc github.com/kopf-go/kopf/pkg/settings.AdmissionEndpoint
	AdmissionEndpoint = settings.AdmissionEndpoint

	// WebhookServer listens on the machine on which the operator runs. Its fields:
	// go doc github.com/kopf-go/kopf/pkg/webhook/servers.Server
	WebhookServer = servers.Server
	// MountedServer serves on the webhook server of a controller-runtime manager, together
	// with its other webhooks. Server and ClientConfig are required. Its
	// fields: go doc github.com/kopf-go/kopf/pkg/webhook/servers.Mounted
	MountedServer = servers.Mounted
)
