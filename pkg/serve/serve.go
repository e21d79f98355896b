package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/serve/document"
	"github.com/kopf-go/kopf/pkg/serve/metacontroller"
	"github.com/kopf-go/kopf/pkg/serve/process"
	"github.com/kopf-go/kopf/pkg/serve/protocol"
	"github.com/kopf-go/kopf/pkg/serve/service"
	"github.com/kopf-go/kopf/pkg/serve/worker"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
)

// Options are what to serve.
type Options struct {
	// Files are the paths of the files.
	Files []string
	// Cluster has the controllers of the cluster, if they are run, too.
	Cluster *document.Document
	// Logger gets what workers say outside of calls.
	Logger logr.Logger
	// Kubeconfig is the file by which the operator connects, for programs and workers that use the cluster. Default: that of the
	// environment.
	Kubeconfig string
	// Start starts a worker in place of its program. Default: the program. It is for tests.
	Start func(*document.Worker) (*worker.Pipes, error)
}

// Program is what files declare, with everything that runs for it. Close ends it.
type Program struct {
	documents []*served
	starter   *process.Starter
	gate      gate
	calls     atomic.Uint64       // for the ids of calls
	handlers  map[string]*handler // by their keys
	indices   indices
	// controllers are those of Metacontroller.
	controllers []*metacontroller.Controller
}

// served is one file.
type served struct {
	*document.Document

	kubeconfig     string
	dir            string // absolute
	declarations   []*document.Declaration
	workers        map[string]*worker.Worker
	startups       map[string]*startups // of the workers
	calls, daemons process.Slots
	services       []*service.Caller
}

// Load reads files, starts their workers, and asks these for their handlers. It returns all mistakes of the
// files together.
func Load(ctx context.Context, options Options) (*Program, error) {
	documents, err := readAll(options.Files)
	if err != nil {
		return nil, err
	}
	if options.Cluster != nil {
		documents = append(documents, options.Cluster)
	}
	p := &Program{handlers: map[string]*handler{}}
	if options.Start == nil || slices.ContainsFunc(documents, hasPrograms) {
		p.starter, err = process.NewStarter()
		if err != nil {
			options.Logger.Error(err, "The watchdog has not started.")
		}
	}
	for _, d := range documents {
		dir, err := filepath.Abs(d.Dir)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("the folder of %s is unknown: %w", d.File, err), p.Close())
		}
		p.documents = append(p.documents, &served{
			Document: d, kubeconfig: options.Kubeconfig, dir: dir, declarations: d.Handlers, workers: map[string]*worker.Worker{}, startups: map[string]*startups{},
			calls: make(process.Slots, d.Limits.Processes), daemons: make(process.Slots, d.Limits.Daemons),
		})
	}
	for _, d := range p.documents {
		for _, name := range d.Environment() {
			if _, ok := os.LookupEnv(name); !ok {
				options.Logger.Info("A variable that programs or workers get is not set.", "variable", name, "file", d.File)
			}
		}
		if err := p.startWorkers(ctx, d, options); err != nil {
			return nil, errors.Join(err, p.Close())
		}
	}
	if err := p.prepare(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// hasPrograms reports whether handlers of a file are programs.
func hasPrograms(d *document.Document) bool {
	return len(d.Side8) > 0 || slices.ContainsFunc(d.Handlers, func(h *document.Declaration) bool { return len(h.Run.Command) > 0 })
}

// readAll reads all files, and returns the mistakes of all of them.
func readAll(files []string) ([]*document.Document, error) {
	var documents []*document.Document
	var problems []error
	for _, file := range files {
		d, err := document.Read(file)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		documents = append(documents, d)
	}
	return documents, errors.Join(problems...)
}

// startWorkers starts the workers of a file, and asks them for their handlers.
func (p *Program) startWorkers(ctx context.Context, d *served, options Options) error {
	for _, declared := range d.Workers {
		logger := options.Logger.WithValues("worker", declared.Name)
		start := worker.FromProgram(p.starter, d.program(declared.Program), logger)
		if options.Start != nil {
			start = func() (*worker.Pipes, error) { return options.Start(declared) }
		}
		before := &startups{}
		d.startups[declared.Name] = before
		d.workers[declared.Name] = worker.New(worker.Options{
			Name: declared.Name, Start: start, Begin: before.repeat, Calls: declared.Calls, StartTimeout: declared.StartTimeout,
			StopTimeout: d.Limits.StopTimeout, MaxLine: d.Limits.Output, Logger: options.Logger,
		})
	}
	for _, declared := range d.Workers {
		handlers, err := d.workers[declared.Name].Handlers(ctx)
		if err != nil {
			return fmt.Errorf("%s: the worker %s (%s) does not work: %w", declared.Place, declared.Name, strings.Join(declared.Program.Command, " "), err)
		}
		if len(handlers) == 0 {
			continue
		}
		declarations, err := document.ParseHello(declared, d.Dir, handlers)
		if err != nil {
			return fmt.Errorf("%s: the worker %s declares handlers with mistakes:\n%w", declared.Place, declared.Name, err)
		}
		d.declarations = append(slices.Clone(d.declarations), declarations...)
	}
	return nil
}

// inherited are the variables that all programs get: where programs, files, and the cluster are, and the language of
// messages. The credentials of the operator are in none of them.
func inherited() []string {
	return []string{"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", kubeconfigVariable, "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"}
}

// kubeconfigVariable is where clients of Kubernetes in all languages look for their cluster.
const kubeconfigVariable = "KUBECONFIG"

// program returns a program with its folder, and with all variables that it gets.
func (d *served) program(of document.Program) process.Program {
	values := map[string]string{}
	for _, name := range append(inherited(), of.Environment...) {
		if value, ok := os.LookupEnv(name); ok {
			values[name] = value
		}
	}
	if d.kubeconfig != "" {
		values[kubeconfigVariable] = d.kubeconfig
	}
	maps.Copy(values, of.Variables)
	var variables []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		variables = append(variables, name+"="+values[name])
	}
	return process.Program{Command: of.Command, Dir: d.dir, Environment: variables, StopTimeout: d.Limits.StopTimeout}
}

// path returns a path of the file as an absolute one.
func (d *served) path(of string) string {
	if of == "" || filepath.IsAbs(of) {
		return of
	}
	return filepath.Join(d.dir, of)
}

// prepare makes a handler for each declaration. Declarations with the same id and the same program are those of
// one handler, as with functions in Go and in Python.
func (p *Program) prepare() error {
	byID := map[string]*document.Declaration{}
	var problems []error
	isCluster := func(d *served) bool { return d.File == document.Cluster } // it can have controllers later
	declares := func(d *served) bool { return isCluster(d) || len(d.declarations)+len(d.Side8)+len(d.Controllers) > 0 }
	if len(p.documents) > 0 && !slices.ContainsFunc(p.documents, declares) {
		problems = append(problems, fmt.Errorf("%s: neither the file nor its workers declare handlers", p.documents[0].File))
	}
	for _, d := range p.documents {
		for _, declared := range d.declarations {
			key := d.key(declared)
			admission := ""
			if declared.Kind == document.Validate || declared.Kind == document.Mutate { // whose ids are their own
				admission = string(declared.Kind)
			}
			claimed := strings.Join([]string{admission, declared.ID, declared.Field}, "\x00")
			other, taken := byID[claimed]
			isShared := taken && declared.Kind == document.Index && other.Kind == document.Index // each fills the index
			if taken && !isShared && p.handlers[key] == nil {
				problems = append(problems, fmt.Errorf("%s: the id %q is taken by another handler at %s: give one of them another id, or the same program, function, callTimeout, and indices", declared.Place, declared.ID, other.Place))
				continue
			}
			byID[claimed] = declared
			if p.handlers[key] != nil {
				continue
			}
			caller, err := p.caller(d, declared)
			if err != nil {
				problems = append(problems, fmt.Errorf("%s: %s: %w", declared.Place, declared, err))
				continue
			}
			p.handlers[key] = newHandler(p, d, declared, caller)
		}
	}
	p.indices = indicesOf(p.documents)
	for _, d := range p.documents {
		problems = append(problems, document.CheckIndices(d.declarations, p.indices.names()))
	}
	return errors.Join(append(problems, p.prepareControllers())...)
}

// prepareControllers makes the controllers of Metacontroller.
func (p *Program) prepareControllers() error {
	byName := map[string]*document.Controller{}
	var problems []error
	for _, d := range p.documents {
		for _, declared := range d.Controllers {
			if other := byName[declared.String()]; other != nil {
				problems = append(problems, fmt.Errorf("%s: there is another %s at %s", declared.Place, strings.TrimPrefix(declared.String(), "the "), other.Place))
				continue
			}
			byName[declared.String()] = declared
			c, err := metacontroller.New(declared, metacontroller.Options{Output: d.Limits.Output, Enter: p.enterHook})
			if err != nil {
				problems = append(problems, err)
				continue
			}
			p.controllers = append(p.controllers, c)
		}
	}
	return errors.Join(problems...)
}

// enterHook lets a hook begin. If it comes too late, it waits for the end of its daemon, because it has not failed.
func (p *Program) enterHook(ctx context.Context) (leave func(), err error) {
	err = p.gate.enter(ctx)
	if errors.Is(err, errLocked) {
		<-ctx.Done()
	}
	return p.gate.leave, err
}

// key identifies the handler of a declaration: what is called, and under which id.
func (d *served) key(of *document.Declaration) string {
	return fmt.Sprintf("%q", []any{
		d.File, of.ID, of.Field, of.Function, of.Worker, of.CallTimeout, of.Indices,
		of.Run.Command, of.Run.Environment, fmt.Sprint(of.Run.Variables), fmt.Sprint(of.Service),
	})
}

// caller returns who makes the calls of a declaration.
func (p *Program) caller(d *served, of *document.Declaration) (protocol.Caller, error) {
	switch {
	case of.Worker != "":
		return d.workers[of.Worker], nil
	case of.Service.URL != "":
		with := of.Service
		with.CertificateAuthority = d.path(with.CertificateAuthority)
		with.Certificate = d.path(with.Certificate)
		with.Key = d.path(with.Key)
		with.BearerTokenFile = d.path(with.BearerTokenFile)
		caller, err := service.New(with, d.Limits.Output)
		if err != nil {
			return nil, err
		}
		d.services = append(d.services, caller)
		return caller, nil
	default:
		return &process.Caller{Starter: p.starter, Program: d.program(of.Run), Output: d.Limits.Output, Calls: d.calls, Daemons: d.daemons}, nil
	}
}

// Declare declares the handlers in a registry. Mistakes that only the registry finds are reported when the
// operator is made, with their places in the files.
func (p *Program) Declare(r *kopf.Registry) {
	for _, d := range p.documents {
		for _, declared := range d.declarations {
			declare(r, declared, p.handlers[d.key(declared)], p.indices)
		}
		for _, declared := range d.Conditions {
			r.Declarations().AddConditions(declared.Place, declared.Resource)
		}
		for _, declared := range d.Needs {
			r.Declarations().AddNeed(registry.Need{Selector: declared.Resource, Verbs: declared.Verbs, DeclaredAt: declared.Place})
		}
		for _, declared := range d.Side8 {
			declareSide8(r, &side8Programs{p, d, declared})
		}
	}
	for _, c := range p.controllers {
		c.Declare(r)
	}
}

// ApplySettings changes settings to those of the files, in their order.
func (p *Program) ApplySettings(s *kopf.Settings) error {
	for _, d := range p.documents {
		if err := d.ApplySettings(s); err != nil {
			return err
		}
	}
	return nil
}

// ConfigureAdmission sets how the API servers reach the admission handlers and the conversions, if there are any: as the
// variables of the pods say, or else, as on the machine of a developer, at an address of this machine.
func (p *Program) ConfigureAdmission(s *kopf.Settings) error {
	declared := p.admissionHandler()
	if declared == nil || s.Admission.Server != nil {
		return nil
	}
	if s.Name == "" && s.Admission.Managed == "" {
		return fmt.Errorf("%s: %s needs a name for the webhook configurations: add settings: {name: my-operator}", declared.Place, declared)
	}
	found, err := servers.FromEnvironment(&s.Admission, s.Name)
	if found || err != nil {
		return err
	}
	s.Admission.Managed = cmp.Or(s.Admission.Managed, s.Name)
	s.Admission.Server = servers.Auto(servers.Server{})
	return nil
}

// admissionHandler returns the first declaration of a handler that the API servers call, or nil.
func (p *Program) admissionHandler() *document.Declaration {
	for _, d := range p.documents {
		for _, declared := range d.declarations {
			if declared.Kind == document.Validate || declared.Kind == document.Mutate || declared.Kind == document.Convert {
				return declared
			}
		}
	}
	return nil
}

// Drain lets no new calls begin, except for daemons, and waits for those that run. It is for a restart that
// must not interrupt a call. If the context is done before, calls may begin again.
func (p *Program) Drain(ctx context.Context) error { return p.gate.close(ctx) }

// TurnAway lets the calls fail that wait since Drain, and those that begin, so that the operator can end at once. The calls
// of the operator itself, such as cleanup handlers, begin nevertheless.
func (p *Program) TurnAway() { p.gate.lock() }

// Close ends the workers, and waits for them. The operator must have ended.
func (p *Program) Close() error {
	var workers sync.WaitGroup
	for _, d := range p.documents {
		for _, w := range d.workers {
			workers.Go(w.Close)
		}
		for _, s := range d.services {
			s.Close()
		}
	}
	for _, c := range p.controllers {
		c.Close()
	}
	workers.Wait()
	if p.starter == nil {
		return nil
	}
	if err := p.starter.Close(); err != nil {
		return fmt.Errorf("the watchdog for processes has failed: %w", err)
	}
	return nil
}

// callTimeout returns how long a call may take.
func callTimeout(d *served, of *document.Declaration) time.Duration {
	if of.CallTimeout > 0 {
		return of.CallTimeout
	}
	return d.Limits.CallTimeout
}
