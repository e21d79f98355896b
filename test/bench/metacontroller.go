package main

import (
	"context"
	"errors"
	"net/http/httptest"
	"path/filepath"
	"slices"

	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/internal/guard"
)

// metacontroller is the program of that name with a hook that returns the same children as the
// function of childrenOperator. The program is a child of this process, which serves the hook,
// and a proxy of the API server that counts the requests of the program.
type metacontroller struct{}

func (m metacontroller) run(ctx context.Context, env environment) (err error) {
	files, err := guard.New() // the program stops if this process is killed
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Release()) }()
	hook := newSyncHook(env.tally)
	served := httptest.NewServer(hook)
	defer served.Close()
	uncounted := rest.CopyConfig(env.config)
	uncounted.WrapTransport = nil
	remove, err := install(ctx, uncounted, served.URL)
	if err != nil {
		return err
	}
	kubeConfig := env.KubeConfig
	if !env.Direct {
		proxy, err := newProxy(env.config)
		if err != nil {
			return err
		}
		defer proxy.Close()
		kubeConfig = filepath.Join(files.Dir(), "kubeconfig")
		if err := writeProxyConfig(kubeConfig, proxy); err != nil {
			return err
		}
	}
	script, err := files.Wrap(env.Program)
	if err != nil {
		return err
	}
	ready := func() error {
		if err := remove(); err != nil {
			return err
		}
		env.ready()
		return nil
	}
	return m.operate(ctx, env, script, kubeConfig, hook.called, ready)
}

// operate runs the program until the context is done. It calls ready when the hook is called.
func (metacontroller) operate(ctx context.Context, env environment, path, kubeConfig string, called <-chan struct{}, ready func() error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	p, err := startProgram(ctx, path, kubeConfig, env.Workers)
	if err != nil {
		return err
	}
	env.measure(p)
	exited := make(chan error, 1)
	go func() { exited <- p.wait(ctx) }()
	select {
	case err := <-exited:
		return err
	case <-called: // it has listed all objects and children
	}
	if err := ready(); err != nil {
		stop()
		return errors.Join(err, <-exited)
	}
	return <-exited
}

// metacontrollerSteps returns the steps for an operator that keeps children, but the time from
// the change of a child until the call is measured without the proxy, which would add to it.
func metacontrollerSteps(m *measurement) []step {
	steps := childrenSteps(m)
	react := slices.IndexFunc(steps, func(s step) bool { return s.name == "react" })
	return slices.Insert(steps, react, step{"direct", m.connectDirectly})
}

// connectDirectly restarts the program without the proxy, until its next start.
func (m *measurement) connectDirectly(ctx context.Context) error {
	if err := m.operator.stop(); err != nil {
		return err
	}
	m.role.Direct = true
	err := m.start(ctx)
	m.role.Direct = false
	if err != nil {
		return err
	}
	_, err = m.operator.quiet(ctx)
	return err
}
