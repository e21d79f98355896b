package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/kopf-go/kopf/hack/envtest/assets"
)

// warmUp is the number of objects that an operator handles before it is measured, so
// that its connections are open and its code is loaded: not more than are measured.
func (o options) warmUp() int { return min(100, o.objects) }

// measurement measures one subject on a separate control plane.
type measurement struct {
	options
	log               io.Writer
	subject           subject
	role              role
	load              *load
	observer          *observer
	operator          *process
	figures           figures
	backgroundFigures backgroundFigures
	neighborFigures   neighborFigures
	config            *rest.Config // of an administrator
	waitingFigures    waitingFigures
	childrenFigures   childrenFigures
	repairs           *repairs
	shardFigures      shardFigures
	handled           []byte     // a handled object
	replicas          []*process // instead of operator
	revision          int        // of the last changes of objects
	clients           kubernetes.Interface
	probe             *probe
}

// step is one step of a measurement.
type step struct {
	name string
	do   func(context.Context) error
}

// measure takes all figures of one subject.
func measure(ctx context.Context, subject string, o options, log io.Writer) (m *measurement, err error) {
	programs, err := assets.Find()
	if err != nil {
		return nil, err
	}
	plane, err := o.startPlane(programs, subject)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	dir, err := os.MkdirTemp("", "kopf-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	m = &measurement{options: o, log: log, subject: subjects[subject]}
	m.figures = figures{Subject: subject, Description: m.subject.description}
	m.waitingFigures = waitingFigures{Subject: subject, Description: m.subject.description}
	m.childrenFigures = childrenFigures{Subject: subject, Description: m.subject.description}
	m.shardFigures = shardFigures{Subject: subject, Description: m.subject.description}
	m.neighborFigures = neighborFigures{Subject: subject, Description: m.subject.description}
	m.backgroundFigures = backgroundFigures{Subject: subject, Description: m.subject.description}
	m.role = role{Subject: subject, KubeConfig: filepath.Join(dir, "kubeconfig"), Workers: o.workers, Interval: o.interval, Program: o.metacontroller, Limit: o.limit}
	m.role.ContentType = plane.Config().ContentType
	if slices.Contains(neighborSubjects, subject) {
		m.role.User = operatorUser
	}
	if err := os.WriteFile(m.role.KubeConfig, plane.KubeConfig(), 0o600); err != nil {
		return nil, err
	}
	if err := m.prepare(ctx, plane.Config()); err != nil {
		return nil, err
	}
	defer m.observer.stop()
	err = m.runSteps(ctx, m.subject.steps(m))
	return m, err
}

// prepare creates what the measurement needs in the control plane.
func (m *measurement) prepare(ctx context.Context, config *rest.Config) error {
	root, err := assets.Root()
	if err != nil {
		return err
	}
	config.QPS = -1
	m.config = config
	crds := envtest.CRDInstallOptions{Paths: []string{filepath.Join(root, "examples", "crd")}, ErrorIfPathMissing: true}
	if _, err := envtest.InstallCRDs(config, crds); err != nil {
		return err
	}
	if m.clients, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := m.clients.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{}); err != nil {
		return err
	}
	if m.observer, err = observe(ctx, config, m.subject.handled); err != nil {
		return err
	}
	m.load, err = newLoad(config, m.options)
	return err
}

// changeSteps returns the steps for an operator that handles changes.
func changeSteps(m *measurement) []step {
	return []step{
		{"start", m.start},
		{"warm up", m.warm},
		{"create", m.create},
		{"rest", m.rest},
		{"update", m.update},
		{"restart", m.restart},
		{"delete", m.remove},
	}
}

// runSteps runs all steps and stops the operator.
func (m *measurement) runSteps(ctx context.Context, steps []step) error {
	for _, step := range steps {
		began := time.Now()
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		_, _ = fmt.Fprintf(m.log, "  %-8s %s\n", step.name, time.Since(began).Round(100*time.Millisecond))
	}
	if m.operator == nil {
		return nil
	}
	return m.operator.stop()
}

func (m *measurement) start(ctx context.Context) (err error) {
	m.operator, _, err = start(ctx, m.role, m.log)
	return err
}

// warm creates and deletes some objects, and measures the memory of the operator
// without objects.
func (m *measurement) warm(ctx context.Context) error {
	for _, burst := range []burst{m.creation(m.warmUp()), m.deletion(m.warmUp())} {
		if err := m.runBurst(ctx, burst); err != nil {
			return err
		}
		if _, err := m.operator.quiet(ctx); err != nil {
			return err
		}
	}
	empty, err := m.operator.ask(commandRest)
	m.figures.Empty = memoryOf(empty)
	return err
}

func (m *measurement) create(ctx context.Context) (err error) {
	m.figures.Create, err = m.phase(ctx, "create", m.creation(m.objects))
	return err
}

func (m *measurement) update(ctx context.Context) (err error) {
	m.figures.Update, err = m.phase(ctx, "update", m.changing())
	return err
}

func (m *measurement) remove(ctx context.Context) (err error) {
	m.figures.Delete, err = m.phase(ctx, "delete", m.deletion(m.objects))
	return err
}

// rest measures the operator while its objects do not change.
func (m *measurement) rest(ctx context.Context) error {
	before, err := m.operator.ask(commandRest)
	if err != nil {
		return err
	}
	m.figures.Loaded = memoryOf(before)
	m.figures.BytesPerObject = m.figures.Loaded.minus(m.figures.Empty).over(m.objects)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(m.window):
	}
	after, err := m.operator.ask(commandSample)
	m.figures.Rest = Rest{Seconds: m.window.Seconds(), CPU: after.CPU - before.CPU, Requests: after.Requests.minus(before.Requests)}
	return err
}

// restart replaces the operator with a new one, which finds everything handled.
func (m *measurement) restart(ctx context.Context) error {
	if err := m.operator.stop(); err != nil {
		return err
	}
	profiled := m.role
	if m.profiles != "" {
		path, err := m.profilePath("restart")
		if err != nil {
			return err
		}
		profiled.Profile = path
	}
	operator, took, err := start(ctx, profiled, m.log)
	if err != nil {
		return err
	}
	m.operator = operator
	settled, err := operator.quiet(ctx)
	if err != nil {
		return err
	}
	if m.profiles != "" {
		if _, err := operator.ask(commandEnd); err != nil {
			return err
		}
	}
	loaded, err := operator.ask(commandRest)
	m.figures.Restart = Restart{Ready: took, CPU: settled.CPU, Requests: settled.Requests, Memory: memoryOf(loaded), Peak: settled.Peak}
	return err
}
