package servers

import (
	"errors"

	"github.com/kopf-go/kopf/pkg/settings"
)

// CheckReplicas tells why the server cannot be that of several replicas: a call
// reaches any of them, and only the certificate of one of them would be trusted.
func CheckReplicas(server settings.AdmissionServer) error {
	s, ok := server.(Server)
	if !ok || s.Insecure || s.CertFile != "" || s.Secret != "" {
		return nil
	}
	return errors.New("the replicas of the operator would generate a certificate each for their admission servers, of which the cluster " +
		`could trust only that of the leader: name a Secret for all of them in the server ("namespace/name"), or give the certificate in files`)
}
