package docs

import (
	"fmt"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// inline matches code within the text.
	inline = regexp.MustCompile("`[^`]+`")
	// symbols matches names of packages that users import.
	symbols = regexp.MustCompile(`\b(backoff|convergence|diff|hierarchy|kopf|kopftest|lifecycles|login|memo|object|patch|rollout|selector|servers|stop|storage)\.([A-Z]\w*[a-z]\w*)`)
	// methods matches methods of the arguments of handlers.
	methods = regexp.MustCompile(`\b([aceist])\.([A-Z]\w*)\(`)
	// fields matches settings and options, and names of package settings.
	fields = regexp.MustCompile(`\b(?:[sS]ettings|(Options))\.([A-Z]\w+)(?:\.([A-Z]\w+))?`)
)

// ofKopf are names of Kopf that the documentation compares with those of this project.
var ofKopf = strings.Fields(`
	AdmissionError AnnotationsDiffBaseStorage AnnotationsProgressStorage Body BodyEssence ConnectionInfo
	DaemonStoppingReason Diff DiffBaseStorage DiffItem DiffOperation ErrorsMode LocalObjectLogger LogFormat LoginError Memo Meta
	MultiDiffBaseStorage MultiProgressStorage ObjectLogger ObjectReference OperatorRegistry OperatorSettings
	OwnerReference Patch ProgressRecord ProgressStorage RawBody RawEvent SmartProgressStorage Spec Status
	StatusDiffBaseStorage StatusProgressStorage Store UserInfo WebhookAutoServer WebhookAutoTunnel
	WebhookClientConfig WebhookClientConfigService WebhookFn WebhookK3dServer WebhookMinikubeServer
	WebhookNgrokTunnel WebhookServer`)

// arguments are the types of the arguments of handlers, by the names that the
// documentation gives to the arguments.
var arguments = map[string][]string{
	"a": {"Admission", "Activity"},
	"c": {"Change", "ChildChange", "Drift"},
	"e": {"WatchEvent"},
	"i": {"Indexed"},
	"s": {"Startup"},
	"t": {"Task", "Tick"},
}

func TestNamesInTheTextExist(t *testing.T) {
	check := namesChecker{newCompiler(t).importer}
	all, names := pages(t), 0
	for _, page := range slices.Sorted(maps.Keys(all)) {
		if strings.HasPrefix(page, "pkg/") || page == "CONTRIBUTING.md" {
			continue // about the code, which uses such letters for other things
		}
		for _, code := range inline.FindAllString(fenced.ReplaceAllString(all[page], ""), -1) {
			names += len(symbols.FindAllString(code, -1))
			for _, missing := range check.missing(code) {
				t.Errorf("%s: %s does not exist, see %s", page, missing, code)
			}
		}
	}
	if names < 300 {
		t.Errorf("found only %d names", names)
	}
}

type namesChecker struct{ importer types.Importer }

// missing returns the names in a piece of code that do not exist.
func (c namesChecker) missing(code string) []string {
	var found []string
	for _, match := range symbols.FindAllStringSubmatch(code, -1) {
		known := match[1] == "kopf" && slices.Contains(ofKopf, match[2])
		if !known && c.lookup(match[1], match[2]) == nil {
			found = append(found, match[0])
		}
	}
	for _, match := range methods.FindAllStringSubmatch(code, -1) {
		if !slices.ContainsFunc(arguments[match[1]], func(name string) bool { return c.member(c.lookup("kopf", name), match[2]) != nil }) {
			found = append(found, match[0]+")")
		}
	}
	for _, match := range fields.FindAllStringSubmatch(code, -1) {
		owner := c.lookup("kopf", "Settings")
		if match[1] != "" {
			owner = c.lookup("kopf", "Options")
		}
		if strings.HasPrefix(match[0], "settings.") && match[3] == "" && c.lookup("settings", match[2]) != nil {
			continue
		}
		if group := c.member(owner, match[2]); group == nil || match[3] != "" && c.member(group, match[3]) == nil {
			found = append(found, match[0])
		}
	}
	return found
}

// lookup returns the type of what a package declares, or nil.
func (c namesChecker) lookup(pkg, name string) types.Type {
	imported, err := c.importer.Import(known[pkg])
	if err != nil {
		return nil
	}
	if declared := imported.Scope().Lookup(name); declared != nil {
		return declared.Type()
	}
	return nil
}

// member returns the type of a field or method, or nil.
func (c namesChecker) member(owner types.Type, name string) types.Type {
	if owner == nil {
		return nil
	}
	if found, _, _ := types.LookupFieldOrMethod(owner, true, nil, name); found != nil {
		return found.Type()
	}
	return nil
}

func TestMissing(t *testing.T) {
	check := namesChecker{newCompiler(t).importer}
	tests := map[string]string{
		"`kopf.OnCreate(kopf.Resource(\"a\"), fn)`":      "",
		"`kopf.OnCreation`":                              "kopf.OnCreation",
		"`kopf.PRESENT`, `kopf.on.create`":               "",
		"`kopf.OperatorSettings`":                        "",
		"`storage.OperatorSettings`":                     "storage.OperatorSettings",
		"`c.Spec().Int64(\"size\")`, `t.Wait()`":         "",
		"`c.Wait()`":                                     "c.Wait()",
		"`Settings.Execution.Workers`":                   "",
		"`settings.Execution.Worker`":                    "settings.Execution.Worker",
		"`settings.AdmissionServer`":                     "",
		"`settings.AdmissionClient`":                     "settings.AdmissionClient",
		"`stop.Deleted`, `stop.Finished`":                "stop.Finished",
		"`Options.Registry`, `o.Settings.Posting.Level`": "",
		"`Options.Handlers`":                             "Options.Handlers",
	}
	for code, want := range tests {
		if got := strings.Join(check.missing(code), " "); got != want {
			t.Errorf("%s: got %q, want %q", code, got, want)
		}
	}
}

// drawn matches what a diagram names: a function or a type, after a package or a type.
var drawn = regexp.MustCompile(`\b[a-z]\w*\.([A-Za-z]\w*)\b`)

func TestArchitectureDrawsWhatExists(t *testing.T) {
	var declared strings.Builder
	err := filepath.WalkDir(filepath.Join(root(t), "pkg"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		declared.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	names := 0
	for _, one := range blocksOf("architecture.md", pages(t)["docs/architecture.md"]) {
		for _, match := range drawn.FindAllStringSubmatch(one.text, -1) {
			names++
			if !regexp.MustCompile(`(?m)^(func (\(.*\) )?|type |\t)` + match[1] + `\b`).MatchString(declared.String()) {
				t.Errorf("docs/architecture.md:%d: the diagram has %s, which does not exist", one.line, match[0])
			}
		}
	}
	if names < 20 {
		t.Errorf("found only %d names", names)
	}
}

// The words of Kopf, as in the signatures of its decorators and in its chapter about the
// arguments of handlers.
const (
	decorators = `create update delete resume field event daemon timer index validate mutate startup cleanup login probe subhandler register`
	options    = `group version kind plural singular shortcut category id param errors timeout retries backoff
		labels annotations when field value old new optional deleted initial_delay cancellation_backoff
		cancellation_timeout cancellation_polling interval sharp idle operation operations subresource
		persistent side_effects ignore_failures registry`
	keywords = `retry started runtime param settings resource body spec meta status name namespace uid labels
		annotations logger patch memo event reason old new diff stopped dryrun operation subresource warnings
		userinfo headers sslpeer`
	// kopfSettings are the settings of Kopf, without their groups.
	kopfSettings = `ultimate_exiting_timeout enabled loggers level reporting_component reporting_instance
		event_name_prefix name stealth priority lifetime mandatory standalone clusterwide namespaced
		server_timeout client_timeout connect_timeout reconnect_backoff inactivity_timeout label_selectors
		field_selectors shard_selectors chunk_size initial_streaming worker_limit idle_timeout exit_timeout error_delays batch_window disabled server
		managed default_backoff executor max_workers request_timeout error_backoffs enforce_retry_after
		trust_env finalizer progress_storage diffbase_storage consistency_timeout cancellation_polling
		instant_exit_timeout instant_exit_zero_time_cycles`
	// kopfPackage are the names of Kopf's package, besides the decorators.
	kopfPackage = `execute configure LogFormat login_via_pykube login_via_client login_with_kubeconfig
		login_with_service_account LoginError ConnectionInfo event info warn exception spawn_tasks run_tasks
		operator run adopt label not_ all_ any_ none_ get_default_lifecycle set_default_lifecycle
		build_object_reference build_owner_reference append_owner_reference remove_owner_reference ErrorsMode
		AdmissionError WebhookClientConfigService WebhookClientConfig UserInfo WebhookFn WebhookServer
		WebhookK3dServer WebhookMinikubeServer WebhookNgrokTunnel WebhookAutoServer WebhookAutoTunnel
		PermanentError TemporaryError HandlerTimeoutError HandlerRetriesError OperatorRegistry
		get_default_registry set_default_registry OperatorSettings DiffBaseStorage AnnotationsDiffBaseStorage
		StatusDiffBaseStorage MultiDiffBaseStorage ProgressRecord ProgressStorage AnnotationsProgressStorage
		StatusProgressStorage MultiProgressStorage SmartProgressStorage RawEvent RawBody Status Spec Meta Body
		BodyEssence ObjectReference OwnerReference Memo Index Store ObjectLogger LocalObjectLogger Diff
		DiffItem DiffOperation Reason Patch DaemonStoppingReason Resource`
)

// kopfChapters are the chapters of Kopf's documentation, one a line.
const kopfChapters = `Installation
Concepts
Sample Problem
Environment Setup
Custom Resources
Starting the operator
Creating the objects
Updating the objects
Diffing the fields
Cascaded deletion
Cleanup
Handlers
Daemons
Timers
Arguments
Async/Await
Loading and importing
Resource specification
Filtering
Results delivery
Error handling
Scopes
In-memory containers
In-memory indexing
Admission control
Startup
Shutdown
Health-checks
Authentication
Configuration
Peering
Command-line options
Events
Hierarchies
Operator testing
Embedding
Deployment
Continuity
Idempotence
Reconciliation
Tips & Tricks
Troubleshooting
Minikube
Contributing
Architecture
kopf package
Vision
Naming
Alternatives`

// Readers who know a chapter of Kopf's documentation find it here.
func TestFromKopfHasAllChaptersOfKopf(t *testing.T) {
	_, section, _ := strings.Cut(pages(t)["docs/from-kopf.md"], "## Kopf's documentation, chapter by chapter\n")
	for chapter := range strings.SplitSeq(kopfChapters, "\n") {
		if !regexp.MustCompile(`(?m)^\| (\*\*[^*|]*\*\*: )?([^|]*, )?` + regexp.QuoteMeta(chapter) + `(, [^|]*)? \|`).MatchString(section) {
			t.Errorf("docs/from-kopf.md does not say where the chapter %q is", chapter)
		}
	}
}

func TestFromKopfHasAllWordsOfKopf(t *testing.T) {
	all := pages(t)
	sections := map[string]string{
		"docs/from-kopf.md ## Decorators":            decorators,
		"docs/from-kopf.md ## Options of decorators": options,
		"docs/from-kopf.md ## Keywords of handlers":  keywords,
		"docs/arguments.md ## Every keyword of Kopf": keywords,
		"docs/configuration.md ## Coming from Kopf":  kopfSettings,
		"docs/from-kopf.md ## Functions and classes": kopfPackage,
	}
	for place, words := range sections {
		page, title, _ := strings.Cut(place, " ")
		_, section, _ := strings.Cut(all[page], title+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		for word := range strings.FieldsSeq(words) {
			if !regexp.MustCompile(fmt.Sprintf("(?m)^\\|[^|]*`(@kopf\\.(on\\.)?|kopf\\.|[a-z]+\\.)?%s[`(.]", word)).MatchString(section) {
				t.Errorf("%s has no row for %s", place, word)
			}
		}
	}
}
