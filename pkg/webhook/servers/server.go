package servers

import (
	"crypto/tls"
	"net"
	"strconv"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// The defaults of the fields of Server.
const (
	DefaultAddr = "localhost"
	DefaultPort = 9443
	// DefaultMaxBody is what controller-runtime's webhooks take: two objects of the
	// size that etcd can store, and all that is said about them.
	DefaultMaxBody = 7 << 20
	// DefaultTimeout is the longest that an API server waits for an answer.
	DefaultTimeout = 30 * time.Second
)

// allAddresses means all addresses of the machine.
const allAddresses = "0.0.0.0"

// Server listens on this machine, by HTTPS. The zero value is good for development
// with a cluster on the same machine: it generates its certificate.
//
// Specification: the class WebhookServer.
type Server struct {
	// Addr is where to listen: an address, or a host name. Default: DefaultAddr, or
	// all addresses for a Service and for clusters in virtual machines.
	Addr string
	// Port is where to listen. Default: DefaultPort.
	Port int
	// Path is put before the ids of the handlers in the URL.
	Path string
	// Host is how the API servers call this machine. Default: Addr.
	Host string
	// Service is how the API servers call this pod, instead of by an URL.
	Service *admissionregistrationv1.ServiceReference

	// CertFile and KeyFile are the certificate of the server, in PEM. They are read
	// again when they change. Default: both are generated, in memory.
	CertFile, KeyFile string
	// Password decrypts the key in KeyFile.
	Password string
	// CAFile, or CAData, are the CAs by which the API servers verify the certificate,
	// in PEM. Default: the CA of the generated certificate, or those that the cluster
	// trusts anyway.
	CAFile string
	CAData []byte
	// CADump is a file to write these CAs to, for curl --cacert.
	CADump string
	// ExtraNames are other hosts and addresses that a generated certificate is for.
	ExtraNames []string
	// Rotation is how often a generated certificate is replaced. Default:
	// certificates.DefaultRotation.
	Rotation time.Duration
	// Secret is the name of a Secret, "namespace/name", that keeps the generated
	// certificate for all replicas of the operator. Default: none; every process
	// has a certificate of its own, and so there may be only one.
	Secret string

	// ClientCAFile, ClientCADir and ClientCAData are the CAs by which certificates
	// of clients are verified. Default: clients are not asked for any.
	ClientCAFile, ClientCADir string
	ClientCAData              []byte
	// ClientAuth is what is demanded of clients. Default, where there is a CA of
	// theirs: tls.VerifyClientCertIfGiven.
	ClientAuth tls.ClientAuthType
	// TLSOptions adjust the configuration, after everything else.
	TLSOptions []func(*tls.Config)
	// Insecure serves plain HTTP. Kubernetes does not call it; tunnels and curl do.
	Insecure bool

	// MaxBody is how many bytes a request may have. Default: DefaultMaxBody.
	MaxBody int64
	// Timeout is how long a request may take. Default: DefaultTimeout.
	Timeout time.Duration
}

// withDefaults fills in what is not set.
func (s Server) withDefaults() Server {
	if s.Addr == "" {
		s.Addr = DefaultAddr
		if s.Service != nil {
			s.Addr = allAddresses
		}
	}
	if s.Port == 0 {
		s.Port = DefaultPort
	}
	if s.MaxBody == 0 {
		s.MaxBody = DefaultMaxBody
	}
	if s.Timeout == 0 {
		s.Timeout = DefaultTimeout
	}
	if s.Host == "" {
		s.Host = s.Addr
	}
	return s
}

// address is where to listen.
func (s Server) address() string { return net.JoinHostPort(s.Addr, strconv.Itoa(s.Port)) }
