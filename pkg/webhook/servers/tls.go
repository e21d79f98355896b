package servers

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/webhook/certificates"
)

// certificateSource returns the source of the server's certificate.
func (s Server) certificateSource(endpoint settings.AdmissionEndpoint, logger logr.Logger) (certificates.Source, error) {
	switch {
	case (s.CertFile == "") != (s.KeyFile == ""):
		return nil, errors.New("the admission server needs either both CertFile and KeyFile, or none of them")
	case s.CertFile != "":
		return &certificates.Files{
			Certificate: s.CertFile, Key: s.KeyFile, DecryptKey: s.DecryptKey, CA: s.CAFile, CAData: s.CAData, Logger: logger,
		}, nil
	case s.CAFile != "" || len(s.CAData) > 0:
		return nil, errors.New("the admission server generates its certificate together with a CA: " +
			"CAFile and CAData need CertFile and KeyFile; to verify the certificates of clients, set ClientCAFile")
	}
	var store certificates.Store // nil keeps them in memory
	if s.Secret != "" {
		namespace, name, ok := strings.Cut(s.Secret, "/")
		if !ok || namespace == "" || name == "" {
			return nil, fmt.Errorf("the Secret of the admission server is %q, but must have the form %q", s.Secret, "namespace/name")
		}
		store = certificates.NewSecret(endpoint.Client, namespace, name)
	}
	return certificates.NewGenerated(certificates.Options{
		Names: s.certificateNames(), Rotation: s.Rotation, Store: store, IsLeader: endpoint.IsLeader, Logger: logger,
	}), nil
}

// certificateNames returns the hosts and addresses for a generated certificate.
func (s Server) certificateNames() []string {
	names := []string{s.Host, s.Addr}
	if s.Service != nil {
		host := s.Service.Name + "." + s.Service.Namespace + ".svc"
		names = append([]string{host, host + ".cluster.local", s.Service.Name + "." + s.Service.Namespace}, names...)
	}
	names = certificates.Names(append(names, s.ExtraNames...)...)
	if len(names) == 0 { // it listens on all addresses, and has no host name
		return []string{DefaultAddr}
	}
	return names
}

// tlsConfig returns a function that adjusts the configuration of controller-runtime.
func (s Server) tlsConfig(source certificates.Source) (func(*tls.Config), error) {
	clients, err := certificates.ClientCAs(s.ClientCAFile, s.ClientCADir, s.ClientCAData)
	if err != nil {
		return nil, err
	}
	if clients == nil && s.ClientAuth >= tls.VerifyClientCertIfGiven {
		return nil, errors.New("the admission server must verify its clients, but has no CA for them: set ClientCAFile")
	}
	return func(config *tls.Config) {
		config.MinVersion = tls.VersionTLS12
		config.NextProtos = []string{"http/1.1"}
		config.GetCertificate = source.GetCertificate
		config.ClientCAs = clients
		config.ClientAuth = s.ClientAuth
		if clients != nil && s.ClientAuth == tls.NoClientCert {
			config.ClientAuth = tls.VerifyClientCertIfGiven
		}
		for _, adjust := range s.TLSOptions {
			adjust(config)
		}
	}, nil
}
