package health

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Limits of the server. Requests and responses are small.
const (
	readTimeout     = 5 * time.Second
	writeTimeout    = 5 * time.Second  // in addition to the time limit of the probes
	idleTimeout     = 90 * time.Second // longer than the interval of the kubelet's requests
	maxHeaderBytes  = 16 << 10
	shutdownTimeout = 5 * time.Second // for requests in flight
)

// Server is an HTTP server, and a Runnable for a manager.
type Server struct {
	options         Options
	prober          *prober
	shutdownTimeout time.Duration
}

// New returns a server. It does not listen before Start.
func New(o Options) *Server {
	return &Server{o, &prober{probes: o.Probes, ttl: o.Settings.ProbeCacheTTL, log: o.Logger}, shutdownTimeout}
}

// NeedLeaderElection returns false: every replica has its endpoints.
func (*Server) NeedLeaderElection() bool { return false }

// Start listens and serves until the context is done. It returns an error if it
// cannot listen.
func (s *Server) Start(ctx context.Context) error {
	address := s.options.Settings.Address
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("the health endpoint cannot listen on %q; choose another settings.Health.Address: %w", address, err)
	}
	s.options.Logger.Info("The health endpoint is listening.", "address", listener.Addr().String(),
		"liveness", s.options.Settings.LivenessPath, "readiness", s.options.Settings.ReadinessPath)
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout,
		WriteTimeout: s.options.Settings.ProbeCacheTTL + writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes,
	}
	defer func() { _ = server.Close() }() // a graceful shutdown leaves connections open when it times out
	running := manager.Server{Name: "health", Server: server, Listener: listener, ShutdownTimeout: &s.shutdownTimeout}
	if err := running.Start(log.IntoContext(ctx, s.options.Logger.V(1))); err != nil {
		return fmt.Errorf("the health endpoint failed: %w", err)
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(into http.ResponseWriter, request *http.Request) {
	response := s.respond(request)
	header := into.Header()
	header.Set("Content-Type", response.contentType)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	if response.status == http.StatusMethodNotAllowed {
		header.Set("Allow", "GET, HEAD")
	}
	into.WriteHeader(response.status)
	_, _ = into.Write(response.body) // the client has disconnected otherwise
}

func (s *Server) respond(request *http.Request) response {
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		return textResponse(http.StatusMethodNotAllowed, "only GET and HEAD are supported")
	}
	o := s.options.Settings
	check, isCheck := strings.CutPrefix(request.URL.Path, strings.TrimSuffix(o.ReadinessPath, "/")+"/")
	switch {
	case request.URL.Path == o.LivenessPath:
		current, err := s.prober.get(request.Context())
		if err != nil {
			return errorResponse(errProbeTimeout.Error())
		}
		return current
	case request.URL.Path == o.ReadinessPath:
		return readinessResponse(runChecks(s.options.Operator, o.MaxQueueAge), request.URL.Query()["exclude"])
	case isCheck:
		return checkResponse(runChecks(s.options.Operator, o.MaxQueueAge), check)
	default:
		return textResponse(http.StatusNotFound, "not found; the endpoints are "+o.LivenessPath+" and "+o.ReadinessPath)
	}
}
