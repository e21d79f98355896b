package health

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Limits of the server. Requests are tiny, and so are the answers.
const (
	readTimeout     = 5 * time.Second
	writeTimeout    = 5 * time.Second  // beside the time for the probes
	idleTimeout     = 90 * time.Second // longer than the kubelet's pauses
	maxHeaderBytes  = 16 << 10
	shutdownTimeout = 5 * time.Second // for the answers that are under way at the end
)

// Server is the HTTP server, as a Runnable of a manager.
type Server struct {
	options Options
	prober  *prober
}

// New makes a server; it does not listen yet.
func New(o Options) *Server {
	return &Server{o, &prober{probes: o.Probes, ttl: o.Settings.ProbeCacheTTL, log: o.Logger}}
}

// NeedLeaderElection tells the manager that every replica has an endpoint.
func (*Server) NeedLeaderElection() bool { return false }

// Start listens and answers until the context is done. It returns an error if it
// cannot listen.
func (s *Server) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.options.Settings.Address)
	if err != nil {
		return fmt.Errorf("the health endpoint cannot listen on %q; choose another settings.Health.Address: %w", s.options.Settings.Address, err)
	}
	s.options.Logger.Info("The health endpoint listens.", "address", listener.Addr().String(),
		"liveness", s.options.Settings.LivenessPath, "readiness", s.options.Settings.ReadinessPath)
	return s.serve(ctx, listener)
}

func (s *Server) serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout,
		WriteTimeout: s.options.Settings.ProbeCacheTTL + writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes,
	}
	closed := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		defer close(closed)
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if server.Shutdown(ending) != nil {
			_ = server.Close() // whoever still asks gets no answer
		}
	})()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("the health endpoint has failed: %w", err)
	}
	<-closed
	return nil
}

// ServeHTTP answers the requests.
func (s *Server) ServeHTTP(into http.ResponseWriter, request *http.Request) {
	s.respond(request).write(into)
}

func (s *Server) respond(request *http.Request) response {
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		return textResponse(http.StatusMethodNotAllowed, "GET and HEAD are all that is answered")
	}
	switch request.URL.Path {
	case s.options.Settings.LivenessPath:
		return s.liveness(request.Context())
	case s.options.Settings.ReadinessPath:
		return readinessResponse(s.options.Operator, s.options.Settings.MaxQueueAge)
	default:
		return textResponse(http.StatusNotFound, "there are "+s.options.Settings.LivenessPath+" and "+s.options.Settings.ReadinessPath)
	}
}

func (s *Server) liveness(ctx context.Context) response {
	current, err := s.prober.get(ctx)
	if err != nil {
		return errorResponse(errProbeTimeout.Error())
	}
	return current
}
