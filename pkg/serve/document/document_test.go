package document_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/rollout"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/serve/document"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/storage"
)

func TestAFileIsReadWithAllItsWords(t *testing.T) {
	d, err := document.Parse("dir/operator.yaml", []byte(`
kopf: v1
limits: {callTimeout: 90, stopTimeout: 1m30s, output: 2048, processes: 3, daemons: 4}
workers:
  python: {command: [python3, w.py, 8], environment: [TOKEN], variables: {A: b}, calls: 7, startTimeout: 5}
handlers:
- create: [kopf.dev, v1, kopfexamples]
  id: create_fn
  function: module.create
  worker: python
  param: {a: 1, b: [true, 1.5]}
  labels: {a: b, c: {present: true}, d: {not: {in: [x, y]}}}
  retries: 3
  timeout: 1h
  backoff: 0
  limit: 2
  idle: 5s
  after: other
- update: kopfexamples.kopf.dev
  id: other
  field: spec.size
  old: {absent: true}
  new: 5
  errors: permanent
  exponentialBackoff: {first: 1, longest: 10m}
  run: [./update.sh]
  environment: [HOSTNAME]
- timer: {group: kopf.dev, shortName: kex}
  id: backup
  schedule: 0 3 * * *
  timeZone: Europe/Berlin
  catchUp: 0
  url: https://example.com/backup
  tls: {certificateAuthority: ca.crt}
- startup: true
  id: begin
  worker: python
`))
	if err != nil {
		t.Fatal(err)
	}
	if want := (document.Limits{CallTimeout: 90 * time.Second, StopTimeout: 90 * time.Second, Output: 2048, Processes: 3, Daemons: 4}); d.Limits != want {
		t.Errorf("got the limits %+v, want %+v", d.Limits, want)
	}
	python := d.WorkerNamed("python")
	want := &document.Worker{Name: "python", Place: "dir/operator.yaml:5", Calls: 7, StartTimeout: 5 * time.Second, Program: document.Program{
		Command: []string{"python3", "w.py", "8"}, Environment: []string{"TOKEN"}, Variables: map[string]string{"A": "b"},
	}}
	if diff := cmp.Diff(want, python); diff != "" {
		t.Errorf("the worker (-want +got):\n%s", diff)
	}
	create, update, timer := d.Handlers[0], d.Handlers[1], d.Handlers[2]
	if create.Place != "dir/operator.yaml:7" || create.Resource.String() == "" || create.Retries != 3 || create.Timeout != time.Hour || *create.Backoff != 0 || create.Limit != 2 || create.Idle != 5*time.Second {
		t.Errorf("got the creation handler %+v", create)
	}
	if diff := cmp.Diff(map[string]any{"a": int64(1), "b": []any{true, 1.5}}, create.Param); diff != "" || !create.HasParam {
		t.Errorf("the parameter (-want +got):\n%s", diff)
	}
	if m := create.Labels["d"].Not; m == nil || len(m.AnyOf) != 2 || *m.AnyOf[1].Equal != "y" || !create.Labels["c"].Present || *create.Labels["a"].Equal != "b" {
		t.Errorf("got the labels %+v", create.Labels)
	}
	if !update.Old.Absent || *update.New.Equal != int64(5) || update.Errors != "permanent" || *update.ExponentialBackoff != (document.ExponentialBackoff{First: time.Second, Longest: 10 * time.Minute}) {
		t.Errorf("got the update handler %+v", update)
	}
	if timer.Schedule != "0 3 * * *" || timer.TimeZone != "Europe/Berlin" || *timer.CatchUp != 0 || timer.Service.URL != "https://example.com/backup" || timer.Service.CertificateAuthority != "ca.crt" {
		t.Errorf("got the timer %+v", timer)
	}
	if d.Handlers[3].Kind != document.Startup || d.Handlers[3].Worker != "python" {
		t.Errorf("got the startup handler %+v", d.Handlers[3])
	}
}

func TestTheWordsOfOtherKindsAreRead(t *testing.T) {
	d, err := document.Parse("f.yaml", []byte(`
kopf: v1
conditions: [kopfexamples]
needs:
- {resource: secrets, verbs: [get, status/patch]}
handlers:
- index: pods
  id: pods_by_node
  field: spec.nodeName
  retries: 2
  indices: others
  run: [a]
- child: kopfexamples
  children: [v1, pods]
  id: pod_changed
  childLabel: example.com/owner
  deleted: true
  limit: 3
  run: [a]
- drift: kopfexamples
  id: scaled
  ensuredBy: web
  run: [a]
- convert: sites
  id: turn
  from: v1alpha1
  to: v1
  run: [a]
- ensure: kopfexamples
  id: web
  watchIndices: pods_by_node
  indices: [pods_by_node]
  run: [a]
- update: kopfexamples
  id: again
  revision: "2"
  rollout: [5, 10%, 100%]
  run: [a]
`))
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Conditions) != 1 || d.Conditions[0].Place != "f.yaml:3" || d.Conditions[0].Resource != selector.New("kopfexamples") {
		t.Errorf("got the conditions %+v", d.Conditions)
	}
	if diff := cmp.Diff([]document.Need{{Place: "f.yaml:5", Resource: selector.New("secrets"), Verbs: []string{"get", "status/patch"}}}, d.Needs, cmp.Comparer(func(a, b selector.Selector) bool { return a == b })); diff != "" {
		t.Errorf("the needs (-want +got):\n%s", diff)
	}
	index, child, drift, conversion, ensure, update := d.Handlers[0], d.Handlers[1], d.Handlers[2], d.Handlers[3], d.Handlers[4], d.Handlers[5]
	if index.Kind != document.Index || index.Field != "spec.nodeName" || index.Retries != 2 || !slices.Equal(index.Indices, []string{"others"}) {
		t.Errorf("got the index %+v", index)
	}
	if child.Kind != document.Child || child.Children != selector.New("v1", "pods") || child.ChildLabel != "example.com/owner" || !child.Deleted || child.Limit != 3 {
		t.Errorf("got the handler of children %+v", child)
	}
	if drift.Kind != document.Drift || !slices.Equal(drift.EnsuredBy, []string{"web"}) {
		t.Errorf("got the handler of drift %+v", drift)
	}
	if conversion.Kind != document.Convert || conversion.From != "v1alpha1" || conversion.To != "v1" {
		t.Errorf("got the conversion %+v", conversion)
	}
	if !slices.Equal(ensure.WatchIndices, []string{"pods_by_node"}) || !slices.Equal(ensure.Indices, []string{"pods_by_node"}) {
		t.Errorf("got the handler that ensures children %+v", ensure)
	}
	if want := []rollout.Step{rollout.First(5), rollout.ThenPercent(10), rollout.ThenPercent(100)}; !slices.Equal(update.Rollout, want) {
		t.Errorf("got the rollout %+v, want %+v", update.Rollout, want)
	}
}

// A mistake is named with its line and the nearest correct word.
func TestMistakesInFilesAreNamed(t *testing.T) {
	const run = "\n  run: [./a]\n"
	for name, test := range map[string]struct{ text, want string }{
		"nothing":                       {"", "f.yaml: the file is empty: it begins with kopf: v1"},
		"no version":                    {"handlers: []", "f.yaml:1: the file does not say its version: add kopf: v1"},
		"another version":               {"kopf: v2\nhandlers: []", `f.yaml:1: the version "v2" is unknown`},
		"no handlers":                   {"kopf: v1", "f.yaml:1: the file declares nothing: add handlers"},
		"broken YAML":                   {"kopf: [", "f.yaml: yaml: line 1"},
		"an unknown word":               {"kopf: v1\nhandler: []", "f.yaml:2: the file has an unknown word, handler: did you mean handlers?"},
		"a word twice":                  {"kopf: v1\nhandlers: []\nkopf: v1", "f.yaml:3: the file has kopf twice: it is also in line 1"},
		"an unknown kind":               {"kopf: v1\nhandlers:\n- craete: a\n  id: b" + run, "f.yaml:3: the handler does not say what it is for, and has an unknown word, craete: did you mean create?"},
		"two kinds":                     {"kopf: v1\nhandlers:\n- create: a\n  update: a\n  id: b" + run, "f.yaml:4: a handler is declared by one word, not by create and update: use two handlers with the same id"},
		"an unknown option":             {"kopf: v1\nhandlers:\n- create: a\n  id: b\n  retrys: 1" + run, `f.yaml:5: the create handler "b" has an unknown word, retrys: did you mean retries?`},
		"an option of another kind":     {"kopf: v1\nhandlers:\n- create: a\n  id: b\n  interval: 1" + run, `f.yaml:5: the create handler "b" cannot have interval, which is for timer`},
		"no id":                         {"kopf: v1\nhandlers:\n- create: a" + run, "f.yaml:3: the create handler has no id: add id: my_handler"},
		"a side8 without a program":     {"kopf: v1\nside8:\n- {resource: a}", "f.yaml:3: an entry of side8 has a resource and the program apply"},
		"a side8 with a wrong word":     {"kopf: v1\nside8:\n- {resource: a, aply: [./a]}", "f.yaml:3: side8 has an unknown word, aply: did you mean apply?"},
		"no program":                    {"kopf: v1\nhandlers:\n- {create: a, id: b}", `f.yaml:3: the create handler "b" names nothing to call: add run, worker, or url`},
		"two programs":                  {"kopf: v1\nhandlers:\n- {create: a, id: b, url: 'http://a', run: [a]}", `the create handler "b" has run and url: leave all but one out`},
		"a command line":                {"kopf: v1\nhandlers:\n- {create: a, id: b, run: ./a --b}", "a command is a list of the program and its arguments, because there is no shell: write [./a, --b]"},
		"an unknown worker":             {"kopf: v1\nworkers: {python: {command: [a]}}\nhandlers:\n- {create: a, id: b, worker: pyhton}", `f.yaml:4: the create handler "b" is for the worker "pyhton", which is not declared: did you mean python?`},
		"a worker without a command":    {"kopf: v1\nworkers: {python: {calls: 1}}", "f.yaml:2: the worker python has no command"},
		"a duration without a unit":     {"kopf: v1\nhandlers:\n- {timer: a, id: b, interval: '5 minutes', run: [a]}", `"5 minutes" is no duration: write 90, 90s, or 1m30s`},
		"a negative duration":           {"kopf: v1\nhandlers:\n- {timer: a, id: b, interval: -5, run: [a]}", "the duration -5 is negative"},
		"an interval of nothing":        {"kopf: v1\nhandlers:\n- {timer: a, id: b, interval: 0, run: [a]}", "the duration must be more than 0"},
		"too few attempts":              {"kopf: v1\nhandlers:\n- {create: a, id: b, retries: 0, run: [a]}", "0 is too small: it must be at least 1"},
		"a number as a text":            {"kopf: v1\nhandlers:\n- {create: a, id: 5, run: [a]}", `expected a text, not "5": in quotes, it is one`},
		"a filter with two words":       {"kopf: v1\nhandlers:\n- {create: a, id: b, labels: {x: {present: true, absent: true}}, run: [a]}", "a filter has exactly one of present, absent, equal, not, and in"},
		"a mapping as a filter":         {"kopf: v1\nhandlers:\n- {create: a, id: b, field: c, value: {x: 1}, run: [a]}", "the filter has an unknown word, x"},
		"an empty filter":               {"kopf: v1\nhandlers:\n- {create: a, id: b, labels: {x: }, run: [a]}", "the filter is empty: for a value that must be absent, write {absent: true}"},
		"a value without a field":       {"kopf: v1\nhandlers:\n- {create: a, id: b, value: 1, run: [a]}", `the create handler "b" has value without field`},
		"a change without a field":      {"kopf: v1\nhandlers:\n- {change: a, id: b, run: [a]}", `the change handler "b" has no field: add field: spec.size, for example`},
		"a variable with a value":       {"kopf: v1\nhandlers:\n- {create: a, id: b, run: [a], environment: [A=b]}", "environment has the names of variables that are passed on: put A=b into variables"},
		"an unknown setting":            {"kopf: v1\nsettings: {execution: {backof: 1}}\nhandlers: []", "f.yaml:2: settings.execution has an unknown word, backof: did you mean backoff?"},
		"a setting of another type":     {"kopf: v1\nsettings: {peering: {priority: high}}\nhandlers: []", `expected a whole number, not "high"`},
		"a handler without children":    {"kopf: v1\nhandlers:\n- {child: a, id: b, run: [a]}", `f.yaml:3: the child handler "b" has no children: add children: pods, for example`},
		"a conversion to nowhere":       {"kopf: v1\nhandlers:\n- {convert: a, id: b, from: v1, run: [a]}", `f.yaml:3: the convert handler "b" needs both versions: add from: v1alpha1 and to: v1, for example`},
		"a conversion with an index":    {"kopf: v1\nhandlers:\n- {convert: a, id: b, from: v1, to: v2, indices: [c], run: [a]}", `f.yaml:3: the convert handler "b" cannot have indices`},
		"retries of a decision":         {"kopf: v1\nhandlers:\n- {drift: a, id: b, retries: 3, run: [a]}", `f.yaml:3: the drift handler "b" cannot have retries`},
		"a limit of an index":           {"kopf: v1\nhandlers:\n- {index: a, id: b, limit: 3, run: [a]}", `f.yaml:3: the index handler "b" cannot have limit`},
		"a rollout without a revision":  {"kopf: v1\nhandlers:\n- {update: a, id: b, rollout: [5], run: [a]}", `f.yaml:3: the update handler "b" has rollout without revision`},
		"a rollout of too much":         {"kopf: v1\nhandlers:\n- {update: a, id: b, revision: '1', rollout: [5, 101%], run: [a]}", "f.yaml:3: the step 101% is no percentage from 1% to 100%"},
		"a rollout of nothing":          {"kopf: v1\nhandlers:\n- {update: a, id: b, revision: '1', rollout: [0], run: [a]}", "f.yaml:3: 0 is too small: it must be at least 1"},
		"a rollout without steps":       {"kopf: v1\nhandlers:\n- {update: a, id: b, revision: '1', rollout: [], run: [a]}", "f.yaml:3: the rollout has no steps: write [5, 10%]"},
		"a need without verbs":          {"kopf: v1\nneeds: [{resource: secrets}]\nhandlers: []", "f.yaml:2: an entry of needs has a resource and verbs"},
		"a need with a wrong word":      {"kopf: v1\nneeds: [{resource: secrets, verb: get}]\nhandlers: []", "f.yaml:2: needs has an unknown word, verb: did you mean verbs?"},
		"a value that contains itself":  {"kopf: v1\nhandlers:\n- {create: a, id: b, param: &x [*x], run: [a]}", "the value is nested too deeply"},
		"a filter that contains itself": {"kopf: v1\nhandlers:\n- {create: a, id: b, field: c, value: &x {not: *x}, run: [a]}", "the filter is nested too deeply"},
		"an unknown storage":            {"kopf: v1\nsettings:\n  persistence:\n    progress: {anotations: {}}\nhandlers: []", "f.yaml:4: settings.persistence.progress has an unknown storage, anotations: did you mean annotations?"},
		"a storage of another setting":  {"kopf: v1\nsettings: {persistence: {diffBase: [{smart: {}}]}}\nhandlers: []", "settings.persistence.diffBase has an unknown storage, smart: it must be annotations or status"},
		"a storage as a text":           {"kopf: v1\nsettings: {persistence: {progress: status}}\nhandlers: []", "settings.persistence.progress must be one storage, such as"},
		"two storages in a mapping":     {"kopf: v1\nsettings: {persistence: {progress: {status: {}, smart: {}}}}\nhandlers: []", "or a list of them"},
		"a list without a storage":      {"kopf: v1\nsettings: {persistence: {progress: []}}\nhandlers: []", "settings.persistence.progress has no storage"},
		"an unknown word of a storage":  {"kopf: v1\nsettings: {persistence: {diffBase: {status: {fild: status.x}}}}\nhandlers: []", "settings.persistence.diffBase.status has an unknown word, fild: did you mean field?"},
		"a field with an empty part":    {"kopf: v1\nsettings: {persistence: {diffBase: {status: {field: status..x}}}}\nhandlers: []", "has an empty part"},
		"a prefix that cannot be one":   {"kopf: v1\nsettings: {persistence: {progress: {annotations: {prefix: my op}}}}\nhandlers: []", "f.yaml:2: settings.persistence.progress: "},
		"a level of Python":             {"kopf: v1\nsettings: {posting: {level: 30}}\nhandlers: []", "f.yaml:2: settings.posting.level is 30, which is a level of Python: write warn"},
		"an unknown level":              {"kopf: v1\nsettings: {posting: {level: loud}}\nhandlers: []", `f.yaml:2: settings.posting.level must be debug, info, warn, or error, not "loud"`},
		"a setting that only code has":  {"kopf: v1\nsettings: {execution: {lifecycle: asap}}\nhandlers: []", "settings.execution has an unknown word, lifecycle"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := document.Parse("f.yaml", []byte(test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestAllMistakesOfAFileAreReportedTogether(t *testing.T) {
	_, err := document.Parse("f.yaml", []byte("kopf: v1\nlimits: {outptu: 1}\nhandlers:\n- {create: a, run: [a]}\n- {event: a, id: x, retries: 1, run: [a]}"))
	if err == nil || strings.Count(err.Error(), "f.yaml:") != 3 {
		t.Errorf("got %v, want three mistakes", err)
	}
}

func TestSettingsOfAFileChangeOnlyWhatTheySay(t *testing.T) {
	d, err := document.Parse("f.yaml", []byte(`
kopf: v1
settings:
  name: greeter
  scope: {namespaces: [a, "team-*"]}
  execution: {backoff: {first: 1, longest: 1m}, maxCalls: 7}
  networking: {qps: 2.5}
  queueing: {errorDelays: [1, 2m]}
  posting: {level: WARNING}
  replicas: {leaderElection: true, shardKey: namespace}
  watching: {labelSelectors: {pods: a=b}}
handlers: []
`))
	if err != nil {
		t.Fatal(err)
	}
	got := settings.Default()
	want := settings.Default()
	if err := d.ApplySettings(&got); err != nil {
		t.Fatal(err)
	}
	want.Name = "greeter"
	want.Scope.Namespaces = []string{"a", "team-*"}
	want.Execution.Backoff = backoff.Exponential(time.Second, time.Minute)
	want.Execution.MaxCalls = 7
	want.Networking.QPS = 2.5
	want.Queueing.ErrorDelays = []time.Duration{time.Second, 2 * time.Minute}
	want.Posting.Level = 4
	want.Replicas.LeaderElection = true
	want.Replicas.ShardKey = settings.ShardByNamespace
	want.Watching.LabelSelectors = map[string]string{"pods": "a=b"}
	want.Execution.Lifecycle, got.Execution.Lifecycle = nil, nil // functions cannot be compared
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b backoff.Backoff) bool { return a == b })); diff != "" {
		t.Errorf("the settings (-want +got):\n%s", diff)
	}
}

func TestSettingsChooseStorages(t *testing.T) {
	d, err := document.Parse("f.yaml", []byte(`
kopf: v1
settings:
  persistence:
    diffBase: {annotations: {prefix: my-op.example.com, key: base, ignoredFields: [spec.noise, [metadata, labels, example.com/role]], withoutV1: true}}
    progress:
    - smart: {prefix: my-op.example.com, verbose: true}
    - status: {field: status.my-op}
handlers: []
`))
	if err != nil {
		t.Fatal(err)
	}
	var got settings.Settings
	if err := d.ApplySettings(&got); err != nil {
		t.Fatal(err)
	}
	want := settings.Persistence{
		DiffBase: storage.AnnotationsDiffBase{
			Prefix: "my-op.example.com", Key: "base", WithoutV1: true,
			IgnoredFields: []object.Path{{"spec", "noise"}, {"metadata", "labels", "example.com/role"}},
		},
		Progress: storage.MultiProgress{
			storage.SmartProgress{Prefix: "my-op.example.com", Verbose: true},
			storage.StatusProgress{Field: object.Path{"status", "my-op"}},
		},
	}
	if diff := cmp.Diff(want, got.Persistence); diff != "" {
		t.Errorf("the storages (-want +got):\n%s", diff)
	}
}

// declaring is a worker of a file, which declares handlers.
var declaring = &document.Worker{Name: "python", Place: "operators/operator.yaml:3"}

func TestWorkersDeclareHandlersInTheSameForm(t *testing.T) {
	got, err := document.ParseHello(declaring, "operators", []byte(`[{"create": "kopfexamples", "id": "a", "function": "m.a", "retries": 3}, {"daemon": ["kopf.dev", "kopfexamples"], "id": "b"}]`))
	if err != nil || len(got) != 2 || got[0].Worker != "python" || got[0].Retries != 3 || got[1].Kind != document.Daemon {
		t.Errorf("got %+v, %v", got, err)
	}
	for text, want := range map[string]string{
		`[{"create": "a", "id": "b", "retrys": 1}]`:                                                         `the worker python, handler 1: the create handler "b" has an unknown word, retrys: did you mean retries?`,
		`[{"create": "a", "id": "b", "run": ["sh"]}]`:                                                       `the create handler "b" has run, worker, or url, but the worker that declares it is called: leave it out`,
		`[{"create": "a", "id": "b"}, {"place": "handlers.py:7", "create": "a", "id": "b", "interval": 1}]`: `operators/handlers.py:7: the create handler "b" cannot have interval`,
		`[{"place": 5, "create": "a", "id": "b"}]`:                                                          `the worker python, handler 1: expected a text, not "5"`,
		`{"create": "a"}`: "the declarations: the handlers must be a list, not a mapping",
		`[&a b, *a]`:      "the declarations are not valid JSON",
	} {
		if _, err := document.ParseHello(declaring, "operators", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// A handler of a worker is where its function is, if the worker says that, and otherwise where the worker is.
func TestHandlersOfWorkersHavePlaces(t *testing.T) {
	text := `[{"create": "a", "id": "b"}, {"create": "a", "id": "c", "place": "handlers.py:7"}, {"create": "a", "id": "d", "place": "/lib/common.py:9"}]`
	got, err := document.ParseHello(declaring, "operators", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	parts, err := document.ParseSubhandlers("parent", "operators", []byte(`[{"id": "a"}, {"id": "b", "place": "handlers.py:8"}]`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"operators/operator.yaml:3, the worker python, handler 1", "operators/handlers.py:7", "/lib/common.py:9", "parent", "operators/handlers.py:8"}
	for i, each := range append(got, parts...) {
		if each.Place != want[i] {
			t.Errorf("got the place %q, want %q", each.Place, want[i])
		}
	}
}

func TestSubhandlersHaveOptionsButNoProgram(t *testing.T) {
	got, err := document.ParseSubhandlers("parent", "operators", []byte(`[{"id": "a", "retries": 2, "after": ["b"]}, {"id": "b", "field": "spec.x"}]`))
	if err != nil || len(got) != 2 || got[0].Retries != 2 || got[0].After[0] != "b" || got[1].Field != "spec.x" {
		t.Errorf("got %+v, %v", got, err)
	}
	for text, want := range map[string]string{
		`[{"id": "a", "run": ["sh"]}]`:     "parent, sub-handler 1: the sub-handler \"a\" cannot have run: it is called as its parent",
		`[{"id": "a", "interval": 5}]`:     "cannot have interval",
		`["a"]`:                            `a sub-handler must be an object, such as {"id": "item"}, not "a"`,
		`[{"id": "a", "idd": "b"}]`:        "has an unknown word, idd: did you mean id?",
		`[{"retries": 1, "field": "s.x"}]`: "has no id",
	} {
		if _, err := document.ParseSubhandlers("parent", "operators", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// The schema of editors is made from the words of the decoder.
func TestTheSchemaIsCurrent(t *testing.T) {
	got, err := document.Schema()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("KOPF_UPDATE_GOLDEN") != "" {
		if err := os.WriteFile("schema.json", got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	recorded, err := os.ReadFile("schema.json")
	if err != nil || string(recorded) != string(got) {
		t.Errorf("schema.json is out of date: set KOPF_UPDATE_GOLDEN=1, and run the test again (%v)", err)
	}
}

func TestTheFilesOfTheExamplesAreRead(t *testing.T) {
	files, err := filepath.Glob("../../../examples/languages/*/operator.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("found %q, %v", files, err)
	}
	for _, file := range files {
		if _, err := document.Read(file); err != nil {
			t.Error(err)
		}
	}
}

// listing matches the files in the guide, and what it says about limits.
var listing = regexp.MustCompile("(?s)```yaml\n(.*?)```")

func TestTheFilesOfTheGuideAreRead(t *testing.T) {
	text, err := os.ReadFile("../../../docs/languages.md")
	if err != nil {
		t.Fatal(err)
	}
	found := listing.FindAllStringSubmatch(string(text), -1)
	if len(found) < 3 {
		t.Errorf("the guide has %d files", len(found))
	}
	for _, each := range found {
		if _, err := document.Parse("languages.md", []byte(each[1])); err != nil {
			t.Errorf("%v in\n%s", err, each[1])
		}
	}
	for word, want := range map[string]string{
		"callTimeout": "`5m`", "stopTimeout": "`10s`", "output": strconv.Itoa(document.DefaultOutput),
		"processes": strconv.Itoa(document.DefaultProcesses), "daemons": strconv.Itoa(document.DefaultDaemons),
	} {
		if row := "| `" + word + "` | " + want + " |"; !strings.Contains(string(text), row) {
			t.Errorf("the guide has no row %s", row)
		}
	}
	if document.DefaultCallTimeout != 5*time.Minute || document.DefaultStopTimeout != 10*time.Second {
		t.Error("the guide has other time limits")
	}
}

// No file makes the decoder panic, or accepts what cannot be declared.
func FuzzParse(f *testing.F) {
	f.Add("kopf: v1\nhandlers:\n- {create: a, id: b, run: [c], labels: {x: {in: [1, {absent: true}]}}}")
	f.Add("kopf: v1\nsettings: &a {name: *a}")
	f.Add("kopf: v1\nworkers: {a: {command: [b]}}\nhandlers: [{<<: {create: x}}]")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := document.Parse("f.yaml", []byte(text))
		if err != nil {
			return
		}
		for _, h := range d.Handlers {
			if h.ID == "" || h.Kind == "" {
				t.Errorf("accepted %+v", h)
			}
		}
	})
}

func TestSide8(t *testing.T) {
	d, err := document.Parse("f.yaml", []byte("kopf: v1\nside8:\n- {resource: shops.example.com, apply: [./apply, -v], delete: [./delete], environment: [TOKEN], variables: {A: b}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	with := func(command ...string) document.Program {
		return document.Program{Command: command, Environment: []string{"TOKEN"}, Variables: map[string]string{"A": "b"}}
	}
	if s := d.Side8[0]; len(d.Side8) != 1 || s.Place != "f.yaml:3" || !cmp.Equal(s.Apply, with("./apply", "-v")) || !cmp.Equal(s.Delete, with("./delete")) {
		t.Errorf("got %+v", d.Side8[0])
	}
}

// As in Kopf, and in Go.
func TestTheCoreGroupIsEmpty(t *testing.T) {
	d, err := document.Parse("f.yaml", []byte(`{kopf: v1, handlers: [{event: ["", v1, pods], id: seen, run: [a]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if want := selector.New("", "v1", "pods"); d.Handlers[0].Resource != want {
		t.Errorf("got %s, want %s", d.Handlers[0].Resource, want)
	}
}
