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

// certificateSource is where the certificate comes from.
func (s Server) certificateSource(endpoint settings.AdmissionEndpoint, logger logr.Logger) (certificates.Source, error) {
	switch {
	case (s.CertFile == "") != (s.KeyFile == ""):
		return nil, errors.New("the admission server needs both, CertFile and KeyFile, or none of them")
	case s.CertFile != "":
		return &certificates.Files{
			Certificate: s.CertFile, Key: s.KeyFile, Password: s.Password, CA: s.CAFile, CAData: s.CAData, Logger: logger,
		}, nil
	case s.CAFile != "" || len(s.CAData) > 0:
		return nil, errors.New("the admission server generates its certificate with a CA of its own: " +
			"CAFile and CAData are for CertFile and KeyFile; for the certificates of clients there is ClientCAFile")
	}
	store, err := s.certificateStore(endpoint)
	if err != nil {
		return nil, err
	}
	return certificates.NewGenerated(certificates.Options{Names: s.certificateNames(), Rotation: s.Rotation, Store: store, Logger: logger}), nil
}

// certificateStore is nil for certificates in memory.
func (s Server) certificateStore(endpoint settings.AdmissionEndpoint) (certificates.Store, error) {
	if s.Secret == "" {
		return nil, nil //nolint:nilnil // see above
	}
	namespace, name, ok := strings.Cut(s.Secret, "/")
	if !ok || namespace == "" || name == "" {
		return nil, fmt.Errorf("the Secret of the admission server is %q, and should be like %q", s.Secret, "namespace/name")
	}
	return certificates.NewSecret(endpoint.Client, namespace, name), nil
}

// certificateNames are what a generated certificate is for.
func (s Server) certificateNames() []string {
	names := []string{s.Host, s.Addr}
	if s.Service != nil {
		host := s.Service.Name + "." + s.Service.Namespace + ".svc"
		names = append([]string{host, host + ".cluster.local", s.Service.Name + "." + s.Service.Namespace}, names...)
	}
	names = certificates.Names(append(names, s.ExtraNames...)...)
	if len(names) == 0 { // it listens everywhere, and nobody said how it is called
		return []string{DefaultAddr}
	}
	return names
}

// tlsConfig adjusts what controller-runtime has prepared.
func (s Server) tlsConfig(source certificates.Source) (func(*tls.Config), error) {
	clients, err := certificates.ClientCAs(s.ClientCAFile, s.ClientCADir, s.ClientCAData)
	if err != nil {
		return nil, err
	}
	if clients == nil && s.ClientAuth >= tls.VerifyClientCertIfGiven {
		return nil, errors.New("the admission server is to verify its clients, and has no CA to do so: set ClientCAFile")
	}
	return func(config *tls.Config) {
		config.MinVersion = tls.VersionTLS12
		config.NextProtos = []string{"http/1.1"}
		config.GetCertificate = source.GetCertificate
		config.ClientCAs, config.ClientAuth = clients, s.ClientAuth
		if clients != nil && s.ClientAuth == tls.NoClientCert {
			config.ClientAuth = tls.VerifyClientCertIfGiven
		}
		for _, adjust := range s.TLSOptions {
			adjust(config)
		}
	}, nil
}
