package servers

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/version"

	"github.com/kopf-go/kopf/pkg/settings"
)

// maxVersionSize limits the answer of the API server to GET /version.
const maxVersionSize = 1 << 20

// detectHost returns the host name by which a cluster on this machine calls this
// machine, or "" for a cluster of an unknown kind.
func detectHost(ctx context.Context, endpoint settings.AdmissionEndpoint) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(endpoint.URL, "/")+"/version", http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := endpoint.HTTP.Do(request)
	if err != nil {
		return "", fmt.Errorf("the kind of the cluster cannot be detected: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	var info version.Info
	if err := json.NewDecoder(io.LimitReader(response.Body, maxVersionSize)).Decode(&info); err != nil {
		return "", fmt.Errorf("the kind of the cluster cannot be detected: its answer to GET /version: %w", err)
	}
	var served *x509.Certificate
	if response.TLS != nil && len(response.TLS.PeerCertificates) > 0 {
		served = response.TLS.PeerCertificates[0]
	}
	return clusterHost(served, info.GitVersion), nil
}

// clusterHost recognizes clusters by the names in their certificates and versions.
func clusterHost(served *x509.Certificate, gitVersion string) string {
	subject := ""
	organization := []string{}
	issuer := ""
	if served != nil {
		subject = served.Subject.CommonName
		organization = served.Subject.Organization
		issuer = served.Issuer.CommonName
	}
	switch {
	case subject == "k3s", slices.Contains(organization, "k3s"), strings.HasPrefix(issuer, "k3s-"), strings.Contains(gitVersion, "+k3s"):
		return K3dHost
	case subject == "minikube", issuer == "minikubeCA":
		return MinikubeHost
	case served != nil && slices.Contains(served.DNSNames, "kubernetes.docker.internal"):
		return DockerDesktopHost
	}
	return ""
}
