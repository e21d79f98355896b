package servers

import (
	"context"
	"crypto"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net"
	"strconv"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// The defaults of the fields of Server.
const (
	DefaultAddr = "localhost"
	DefaultPort = 9443
	// DefaultTimeout is the longest time that an API server waits for an answer.
	DefaultTimeout = 30 * time.Second
)

// allAddresses means all addresses of the machine.
const allAddresses = "0.0.0.0"

// Server listens on this machine for HTTPS. The zero value generates its certificate
// and is for development with a cluster that runs on the same machine.
//
// Specification: the class WebhookServer.
type Server struct {
	// Addr is the address or host name to listen on. Default: DefaultAddr, or all
	// addresses with a Service and for clusters in containers or virtual machines.
	Addr string
	// Port is the port to listen on. Default: DefaultPort with a Service; otherwise any free
	// port, which the published URL has.
	Port int
	// Path is put before the ids of the handlers in the URL.
	Path string
	// Host is the host name or address by which the API servers call this machine.
	// Default: Addr.
	Host string
	// Service is the Service by which the API servers call this pod, instead of a URL.
	Service *admissionregistrationv1.ServiceReference

	// CertFile and KeyFile are the names of PEM files with the certificate of the
	// server and its private key. They are read again when they change. Default: both
	// are generated, in memory.
	CertFile, KeyFile string
	// DecryptKey decrypts the private key in KeyFile. It is called only for a PEM block
	// that is encrypted. Default: an encrypted key is an error.
	DecryptKey func(block *pem.Block) (crypto.PrivateKey, error)
	// CAFile is the name of a PEM file with the CAs by which the API servers verify the
	// certificate; CAData are the CAs themselves. Default: the CA of the generated
	// certificate, or the CAs that the cluster trusts.
	CAFile string
	CAData []byte
	// CADump is the name of a file to write these CAs to, for curl --cacert.
	CADump string
	// ExtraNames are additional host names and addresses for a generated certificate.
	ExtraNames []string
	// Rotation is how often a generated certificate is replaced. Default:
	// certificates.DefaultRotation, 30 days.
	Rotation time.Duration
	// Secret is the name of a Secret, "namespace/name", in which all replicas of the
	// operator share the generated certificate. Default: none; every process generates
	// its own certificate, so the operator can have only one replica.
	Secret string

	// ClientCAFile, ClientCADir and ClientCAData are the CAs by which the server
	// verifies the certificates of clients: a PEM file, a directory of PEM files, and
	// PEM data. Default: clients need no certificate.
	ClientCAFile, ClientCADir string
	ClientCAData              []byte
	// ClientAuth is the requirement on the certificates of clients. Default with a CA for clients:
	// tls.VerifyClientCertIfGiven.
	ClientAuth tls.ClientAuthType
	// TLSOptions adjust the TLS configuration, after everything else.
	TLSOptions []func(*tls.Config)
	// Insecure serves plain HTTP. Kubernetes does not call it; tunnels and curl do.
	Insecure bool

	// Timeout limits the time of a request. Default: DefaultTimeout.
	Timeout time.Duration
}

// withDefaults returns the server with defaults for what is not set.
func (s Server) withDefaults() Server {
	if s.Addr == "" {
		s.Addr = DefaultAddr
		if s.Service != nil {
			s.Addr = allAddresses
		}
	}
	if s.Port == 0 && s.Service != nil {
		s.Port = DefaultPort
	}
	if s.Timeout == 0 {
		s.Timeout = DefaultTimeout
	}
	if s.Host == "" {
		s.Host = s.Addr
	}
	return s
}

// withPort returns the server with a port that was free a moment ago, unless it has one.
func (s Server) withPort(ctx context.Context) (Server, error) {
	if s.Port != 0 {
		return s, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.address())
	if err != nil {
		return s, fmt.Errorf("looking for a free port for the admission server on %s: %w", s.Addr, err)
	}
	if address, isTCP := listener.Addr().(*net.TCPAddr); isTCP {
		s.Port = address.Port
	}
	return s, listener.Close()
}

// address returns the address to listen on.
func (s Server) address() string { return net.JoinHostPort(s.Addr, strconv.Itoa(s.Port)) }
