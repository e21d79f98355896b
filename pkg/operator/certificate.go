package operator

import (
	"errors"

	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
)

// checkReplicas returns an error if the server cannot serve an operator with several
// replicas: the API servers call any of them, but would trust only the certificate of
// the leader.
func checkReplicas(server settings.AdmissionServer) error {
	s, ok := server.(servers.Server)
	if !ok || s.Insecure || s.CertFile != "" || s.Secret != "" {
		return nil
	}
	return errors.New("each replica of the operator would generate its own certificate for its admission server, and the cluster " +
		`would trust only that of the leader: set Secret ("namespace/name") in the server to share one certificate, or set CertFile and KeyFile`)
}
