package controlplane

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/kopf-go/kopf/internal/binaries"
	"github.com/kopf-go/kopf/internal/guard"
)

// Timeouts of each of the two processes. A start takes five seconds on two idle cores;
// the timeouts allow for a busy machine.
const (
	startTimeout = 90 * time.Second
	stopTimeout  = 30 * time.Second
)

// Options configures a control plane. The zero value suits most callers.
type Options struct {
	// Flags are added to the flags of kube-apiserver, without dashes. They replace
	// defaults of the same name.
	Flags map[string]string
	// Log receives the output of both processes. By default, only the end of the
	// output is kept, for the error of a failed start.
	Log io.Writer
}

// ControlPlane is a running API server with its etcd.
type ControlPlane struct {
	env   *envtest.Environment
	guard *guard.Guard
}

// Start starts a control plane with the programs in a directory, which package binaries
// finds, and waits until it serves. The caller must call Stop.
func Start(programs string, options Options) (*ControlPlane, error) {
	watch, err := guard.New()
	if err != nil {
		return nil, err
	}
	plane := &ControlPlane{env: &envtest.Environment{}, guard: watch}
	output := &tail{}
	if options.Log == nil {
		options.Log = output
	}
	if err := plane.start(programs, options); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the control plane from %s: %w\n%s", programs, err, output), plane.Stop())
	}
	return plane, nil
}

func (p *ControlPlane) start(programs string, options Options) error {
	// Both processes run under the guard, with their files in its directory.
	serverPath, err := p.guard.Wrap(filepath.Join(programs, binaries.APIServer))
	if err != nil {
		return err
	}
	etcdPath, err := p.guard.Wrap(filepath.Join(programs, binaries.Etcd))
	if err != nil {
		return err
	}
	server := &envtest.APIServer{Path: serverPath, CertDir: filepath.Join(p.guard.Dir(), "certs")}
	etcd := &envtest.Etcd{Path: etcdPath, DataDir: filepath.Join(p.guard.Dir(), "data")}
	p.env.ControlPlane.APIServer = server
	p.env.ControlPlane.Etcd = etcd
	if err := errors.Join(os.Mkdir(server.CertDir, 0o700), os.Mkdir(etcd.DataDir, 0o700)); err != nil {
		return err
	}

	server.Out = options.Log
	server.Err = options.Log
	etcd.Out = options.Log
	etcd.Err = options.Log
	for name, value := range options.Flags {
		server.Configure().Set(name, value)
	}
	p.env.ControlPlaneStartTimeout = startTimeout
	p.env.ControlPlaneStopTimeout = stopTimeout
	_, err = p.env.Start()
	return err
}

// Config returns a copy of the configuration of an administrator.
func (p *ControlPlane) Config() *rest.Config { return rest.CopyConfig(p.env.Config) }

// KubeConfig returns the content of a kubeconfig file of an administrator.
func (p *ControlPlane) KubeConfig() []byte { return p.env.KubeConfig }

// Dir returns the directory with the files of both processes. Callers can add files, which are
// removed with it.
func (p *ControlPlane) Dir() string { return p.guard.Dir() }

// Stop stops both processes and removes their files.
func (p *ControlPlane) Stop() error {
	return errors.Join(p.env.Stop(), p.guard.Release())
}
