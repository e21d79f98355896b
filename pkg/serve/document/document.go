package document

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Version is the version of the form of the files: the value of the word kopf.
const Version = "v1"

// Document is one file of kopf serve.
type Document struct {
	// File is the path of the file, as it was given.
	File string
	// Dir is the folder of the file: relative paths begin there.
	Dir string
	// Limits are those of all programs, workers, and services of the file.
	Limits   Limits
	Workers  []*Worker
	Handlers []*Declaration
	Side8    []*Side8
	// Conditions are the resources whose objects have the standard conditions.
	Conditions []Conditions
	// Needs are what handlers do with a client.
	Needs []Need
	// Controllers are those of Metacontroller.
	Controllers []*Controller

	settings *yaml.Node
}

// Limits keep the programs, workers, and services of a file from using up the machine, and from blocking
// their objects for ever.
type Limits struct {
	CallTimeout time.Duration // of one call, unless the handler has its own; not of daemons
	StopTimeout time.Duration // from the signal or message to stop, to the kill
	Output      int           // of one call, in bytes
	Processes   int           // of calls at the same time
	Daemons     int           // processes of daemons at the same time
}

// The defaults of the limits.
const (
	DefaultCallTimeout = 5 * time.Minute
	DefaultStopTimeout = 10 * time.Second
	DefaultOutput      = 4 << 20
	DefaultProcesses   = 50
	DefaultDaemons     = 500

	DefaultStartTimeout = 30 * time.Second
	DefaultCalls        = 100
)

func defaultLimits() Limits {
	return Limits{
		CallTimeout: DefaultCallTimeout, StopTimeout: DefaultStopTimeout,
		Output: DefaultOutput, Processes: DefaultProcesses, Daemons: DefaultDaemons,
	}
}

// Worker is a long-lived process that handles many calls.
type Worker struct {
	Name         string
	Place        string
	Program      Program
	Calls        int           // at the same time, without daemons and indices
	StartTimeout time.Duration // from the start to the first message
}

// Program is what is executed for a call, or as a worker. There is no shell.
type Program struct {
	Command     []string
	Environment []string          // names of variables of the operator that the program gets
	Variables   map[string]string // more variables
}

// Service is where calls are posted to.
type Service struct {
	URL string
	// CertificateAuthority is a file with the certificates that the service must have one of.
	CertificateAuthority string
	// Certificate and Key are the files of the certificate of the operator.
	Certificate, Key string
	// BearerTokenFile is a file with the token of the operator, which is read for each call.
	BearerTokenFile string
}

// Side8 are the programs for a resource by the convention of Side8's operator.
type Side8 struct {
	Place    string
	Resource selector.Selector
	// Apply and Delete have the same environment.
	Apply, Delete Program
}

// Conditions says that objects of a resource have the standard conditions.
type Conditions struct {
	Place    string
	Resource selector.Selector
}

// Need is what handlers do with a client, for the role of the operator.
type Need struct {
	Place    string
	Resource selector.Selector
	Verbs    []string
}

// Read reads a file.
func Read(path string) (*Document, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the file of handlers cannot be read: %w", err)
	}
	return Parse(path, data)
}

// Parse parses a file. The path is for messages, and for relative paths in it.
func Parse(path string, data []byte) (*Document, error) {
	roots, err := documents(path, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	r := &reader{file: path}
	d := &Document{File: path, Dir: filepath.Dir(path), Limits: defaultLimits()}
	var given map[string]bool
	for _, root := range roots {
		switch {
		case isObject(root):
			for _, object := range objectsOf(root) {
				if c := decodeObject(r, object); c != nil {
					d.Controllers = append(d.Controllers, c)
				}
			}
		case given != nil:
			r.problem(root, "the file has two documents that are no objects of Kubernetes: put all handlers into one")
		default:
			given = decodeWords(r, root, documentWords, d, "the file")
			if !given["kopf"] && !r.failed() {
				r.problem(root, "the file does not say its version: add kopf: %s", Version)
			}
		}
	}
	if !r.failed() && !given["handlers"] && !given["workers"] && !given["side8"] && len(d.Controllers) == 0 {
		r.problem(roots[0], "the file declares nothing: add handlers")
	}
	for _, handler := range d.Handlers {
		r.checkWorker(handler, d)
	}
	return d, r.mistakes()
}

// ApplySettings changes settings to those of the file.
func (d *Document) ApplySettings(s *settings.Settings) error {
	if d.settings == nil {
		return nil
	}
	r := &reader{file: d.File}
	decodeSettings(r, d.settings, s)
	return r.mistakes()
}

// WorkerNamed returns a worker of the file, or nil.
func (d *Document) WorkerNamed(name string) *Worker {
	for _, w := range d.Workers {
		if w.Name == name {
			return w
		}
	}
	return nil
}

// Environment returns the names of the variables of the operator that programs and workers get, in order.
func (d *Document) Environment() []string {
	var names []string
	for _, w := range d.Workers {
		names = append(names, w.Program.Environment...)
	}
	for _, h := range d.Handlers {
		names = append(names, h.Run.Environment...)
	}
	for _, s := range d.Side8 {
		names = append(names, s.Apply.Environment...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// documentWords are the words of a file.
var documentWords = words[Document]{
	{"kopf", "The version of the form of this file.", enumSchema(Version), func(r *reader, n *yaml.Node, _ *Document) {
		if version := r.text(n); version != Version && version != "" {
			r.problem(n, "the version %q is unknown: this program reads %s", version, Version)
		}
	}},
	{"settings", "The settings of the operator, by the names of the guide of its configuration, in camelCase. Flags take precedence.", refSchema("settings"), func(r *reader, n *yaml.Node, d *Document) {
		d.settings = resolve(n)
		decodeSettings(r, n, new(settings.Settings))
	}},
	{"limits", "Limits of the programs, workers, and services.", refSchema("limits"), func(r *reader, n *yaml.Node, d *Document) {
		decodeWords(r, n, limitWords, &d.Limits, "limits")
	}},
	{"workers", "Long-lived processes that handle many calls, by their names.", mapSchema(refSchema("worker")), func(r *reader, n *yaml.Node, d *Document) {
		r.each(n, "workers", func(name, value *yaml.Node) {
			w := &Worker{Name: name.Value, Place: r.place(name), Calls: DefaultCalls, StartTimeout: DefaultStartTimeout}
			given := decodeWords(r, value, workerWords, w, "the worker "+name.Value)
			if len(w.Program.Command) == 0 && !given["command"] {
				r.problem(name, "the worker %s has no command: add command: [python3, worker.py]", name.Value)
			}
			d.Workers = append(d.Workers, w)
		})
	}},
	{"handlers", "What handles which objects.", listSchema(refSchema("handler")), func(r *reader, n *yaml.Node, d *Document) {
		for _, item := range r.list(n, "handlers") {
			if h := decodeDeclaration(r, item, r.place(item)); h != nil {
				d.Handlers = append(d.Handlers, h)
				r.checkTarget(item, h)
			}
		}
	}},
	{"conditions", "The resources whose status.conditions have the outcome of the handlers: Ready, Reconciling, and Stalled.", listSchema(refSchema("resource")), func(r *reader, n *yaml.Node, d *Document) {
		for _, item := range r.list(n, "conditions") {
			d.Conditions = append(d.Conditions, Conditions{r.place(item), r.resource(item)})
		}
	}},
	{"needs", "What handlers do with a client, for the roles that rbac and manifests write.", listSchema(refSchema("need")), func(r *reader, n *yaml.Node, d *Document) {
		for _, item := range r.list(n, "needs") {
			need := Need{Place: r.place(item)}
			given := decodeWords(r, item, needWords, &need, "needs")
			if !given["resource"] || !given["verbs"] {
				r.problem(item, "an entry of needs has a resource and verbs: {resource: secrets, verbs: [get, list]}")
			}
			d.Needs = append(d.Needs, need)
		}
	}},
	{"side8", "Programs by the convention of Side8's operator: they get the fields of an object as variables, and write its status.", listSchema(refSchema("side8")), func(r *reader, n *yaml.Node, d *Document) {
		for _, item := range r.list(n, "side8") {
			s := &Side8{Place: r.place(item)}
			given := decodeWords(r, item, side8Words, s, "side8")
			if !given["resource"] || !given["apply"] {
				r.problem(item, "an entry of side8 has a resource and the program apply: {resource: kopfexamples.kopf.dev, apply: [./apply]}")
			}
			d.Side8 = append(d.Side8, s)
		}
	}},
}

// needWords are the words of an entry of needs.
var needWords = words[Need]{
	{"resource", "The resource that handlers use.", refSchema("resource"), func(r *reader, n *yaml.Node, need *Need) { need.Resource = r.resource(n) }},
	{"verbs", "The verbs of RBAC, such as get and list. Those of a subresource have its name in front: status/patch.", textsSchema(), func(r *reader, n *yaml.Node, need *Need) { need.Verbs = r.texts(n) }},
}

// side8Words are the words of an entry of side8.
var side8Words = words[Side8]{
	{"resource", "The resource whose objects the programs are called for.", refSchema("resource"), func(r *reader, n *yaml.Node, s *Side8) { s.Resource = r.resource(n) }},
	{"apply", "The program that is called for an object, and again after each change, with its arguments. It writes the status as YAML.", commandSchema(), func(r *reader, n *yaml.Node, s *Side8) { s.Apply.Command = r.command(n) }},
	{"delete", "The program that is called for a deletion, until it writes nothing. Without it, objects are deleted at once.", commandSchema(), func(r *reader, n *yaml.Node, s *Side8) { s.Delete.Command = r.command(n) }},
	{"environment", "The names of variables of the operator that the programs get, besides PATH, HOME, LANG, LC_ALL, TMPDIR, and TZ.", listSchema(textSchema()), func(r *reader, n *yaml.Node, s *Side8) {
		s.Apply.Environment = r.names(n)
		s.Delete.Environment = s.Apply.Environment
	}},
	{"variables", "More variables of the programs, with their values.", mapSchema(textSchema()), func(r *reader, n *yaml.Node, s *Side8) {
		s.Apply.Variables = r.variables(n)
		s.Delete.Variables = s.Apply.Variables
	}},
}

// limitWords are the words of limits.
var limitWords = words[Limits]{
	{"callTimeout", "How long one call may take, unless the handler has its own callTimeout. Daemons have no limit. Default: 5m.", durationSchema(), func(r *reader, n *yaml.Node, l *Limits) { l.CallTimeout = r.positive(n) }},
	{"stopTimeout", "How long a program may take to end after it was asked to, before it is killed. Default: 10s.", durationSchema(), func(r *reader, n *yaml.Node, l *Limits) { l.StopTimeout = r.positive(n) }},
	{"output", "How many bytes a program or service may answer, and how long a line of a worker may be. Default: 4194304.", numberSchema(1024), func(r *reader, n *yaml.Node, l *Limits) { l.Output = r.number(n, 1024) }},
	{"processes", "How many processes of calls run at the same time; further calls wait. Default: 50.", numberSchema(1), func(r *reader, n *yaml.Node, l *Limits) { l.Processes = r.number(n, 1) }},
	{"daemons", "How many processes of daemons run at the same time; further daemons wait. Default: 500.", numberSchema(1), func(r *reader, n *yaml.Node, l *Limits) { l.Daemons = r.number(n, 1) }},
}

// workerWords are the words of a worker.
var workerWords = words[Worker]{
	{"command", "The program and its arguments. There is no shell.", commandSchema(), func(r *reader, n *yaml.Node, w *Worker) { w.Program.Command = r.command(n) }},
	{"environment", "The names of variables of the operator that the worker gets, besides PATH, HOME, LANG, LC_ALL, TMPDIR, and TZ.", listSchema(textSchema()), func(r *reader, n *yaml.Node, w *Worker) { w.Program.Environment = r.names(n) }},
	{"variables", "More variables of the worker, with their values.", mapSchema(textSchema()), func(r *reader, n *yaml.Node, w *Worker) { w.Program.Variables = r.variables(n) }},
	{"calls", "How many calls the worker handles at the same time, besides daemons and indices; further calls wait. Default: 100.", numberSchema(1), func(r *reader, n *yaml.Node, w *Worker) { w.Calls = r.number(n, 1) }},
	{"startTimeout", "How long the worker may take from its start to its first message. Default: 30s.", durationSchema(), func(r *reader, n *yaml.Node, w *Worker) { w.StartTimeout = r.positive(n) }},
}

// Targets returns an error if a declaration of the file says neither or more than one of run, worker, and url.
func (r *reader) checkTarget(n *yaml.Node, h *Declaration) {
	var targets []string
	if len(h.Run.Command) > 0 {
		targets = append(targets, "run")
	}
	if h.Worker != "" {
		targets = append(targets, "worker")
	}
	if h.Service.URL != "" {
		targets = append(targets, "url")
	}
	switch {
	case r.failed():
	case len(targets) == 0:
		r.problem(n, "%s names nothing to call: add run, worker, or url", h)
	case len(targets) > 1:
		r.problem(n, "%s has %s and %s: leave all but one out", h, targets[0], targets[1])
	}
}

// checkWorker checks that the worker of a declaration exists.
func (r *reader) checkWorker(h *Declaration, d *Document) {
	if h.Worker == "" || d.WorkerNamed(h.Worker) != nil {
		return
	}
	var names []string
	for _, w := range d.Workers {
		names = append(names, w.Name)
	}
	r.errs = append(r.errs, fmt.Errorf("%s: %s is for the worker %q, which is not declared%s", h.Place, h, h.Worker, suggest(h.Worker, names, "add it to workers")))
}

// mistakes returns all mistakes, or nil.
func (r *reader) mistakes() error { return errors.Join(r.errs...) }

func (r *reader) failed() bool { return len(r.errs) > 0 }
