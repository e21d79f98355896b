package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/kopf-go/kopf/pkg/model/rollout"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// Kind is the kind of a declaration: the word that names the resource.
type Kind string

// The kinds. A Change is called for a field, whatever has happened to the object, except for its deletion:
// it is Kopf's on.field. Sub-handlers have no word: they are declared by the answer of a handler.
const (
	Create     Kind = "create"
	Update     Kind = "update"
	Delete     Kind = "delete"
	Resume     Kind = "resume"
	Change     Kind = "change"
	Event      Kind = "event"
	Timer      Kind = "timer"
	Daemon     Kind = "daemon"
	Index      Kind = "index"
	Child      Kind = "child"
	Ensure     Kind = "ensure"
	Drift      Kind = "drift"
	Validate   Kind = "validate"
	Mutate     Kind = "mutate"
	Convert    Kind = "convert"
	Startup    Kind = "startup"
	Cleanup    Kind = "cleanup"
	Probe      Kind = "probe"
	Subhandler Kind = "sub-handler"
)

// Declaration is one handler.
type Declaration struct {
	// Place is where the handler is declared: file and line, or a worker.
	Place    string
	Kind     Kind
	Resource selector.Selector
	ID       string
	// Function is what a worker or a service calls the handler; see protocol.Call.
	Function string

	Run         Program
	Worker      string
	Service     Service
	CallTimeout time.Duration // 0 for that of the limits

	Param       any
	HasParam    bool
	Labels      map[string]*Matcher
	Annotations map[string]*Matcher
	Field       string
	Value       *Matcher
	Old, New    *Matcher

	Errors             string // temporary, permanent, ignored, or empty
	Retries            int    // 0 for no limit
	Timeout            time.Duration
	Backoff            *time.Duration
	ExponentialBackoff *ExponentialBackoff
	Limit              int

	After, AfterFailure []string
	Revision            string
	Baseline            bool
	Rollout             []rollout.Step
	Optional            bool
	HoldOnFailure       bool
	Deleted             bool

	InitialDelay time.Duration
	Interval     time.Duration
	Idle         time.Duration
	Sharp        bool
	Schedule     string
	TimeZone     string
	CatchUp      *int

	// Indices are the names of the indices that each call has.
	Indices []string

	WakeOn              []string
	WatchChildren       []selector.Selector
	ChildLabel          string
	CancellationBackoff time.Duration
	CancellationTimeout *time.Duration
	CancellationPolling time.Duration

	Operations     []string
	Subresource    string
	SideEffects    bool
	IgnoreFailures bool
	Persistent     bool

	AllowEmpty    bool
	AdoptExisting bool
	WaitReady     bool
	Prune         []string
	Recreate      []string
	// WatchIndices are the names of the indices whose changes call the handler.
	WatchIndices []string

	// Children are those that a handler of children is called for.
	Children  selector.Selector
	EnsuredBy []string

	// From and To are the versions of a conversion.
	From, To string
}

// ExponentialBackoff is a pause that doubles.
type ExponentialBackoff struct{ First, Longest time.Duration }

// String names the declaration in messages.
func (d *Declaration) String() string {
	name := string(d.Kind)
	if d.Kind != Subhandler {
		name += " handler"
	}
	if d.ID == "" {
		return "the " + name
	}
	return fmt.Sprintf("the %s %q", name, d.ID)
}

// The kinds that have an option.
var (
	changeKinds     = []Kind{Create, Update, Delete, Resume, Change, Subhandler}
	backgroundKinds = []Kind{Timer, Daemon}
	admissionKinds  = []Kind{Validate, Mutate}
	activityKinds   = []Kind{Startup, Cleanup, Probe}
	fieldKinds      = slices.Concat(changeKinds, backgroundKinds, admissionKinds, []Kind{Event, Index})
	objectKinds     = slices.Concat(fieldKinds, []Kind{Ensure, Child, Drift})
	retriedKinds    = slices.Concat(changeKinds, backgroundKinds, activityKinds, []Kind{Index, Ensure, Child})
	limitedKinds    = slices.Concat(changeKinds, backgroundKinds, []Kind{Ensure, Child})
	readingKinds    = slices.Concat(objectKinds, activityKinds)
	allKinds        = slices.Concat(readingKinds, []Kind{Convert})
	calledKinds     = slices.DeleteFunc(slices.Clone(allKinds), func(k Kind) bool { return k == Daemon })
	idleKinds       = []Kind{Timer, Create, Update, Change, Ensure}
	revisionKinds   = []Kind{Create, Update, Change}
	updateKinds     = []Kind{Update, Change, Subhandler}
)

// option is a word of a declaration, with the kinds of handlers that have it.
type option struct {
	word[Declaration]
	kinds []Kind
}

// of makes options of words.
func of(kinds []Kind, all ...word[Declaration]) []option {
	var options []option
	for _, w := range all {
		options = append(options, option{w, kinds})
	}
	return options
}

// options are the words of a declaration, besides that of its kind.
var options = slices.Concat(
	of(allKinds,
		word[Declaration]{"id", "The id, under which progress and results are stored. With the id of a handler of an operator in Python, the handler continues its work.", textSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.ID = r.nonEmpty(n) }},
		word[Declaration]{"function", "What the worker or service calls the handler. It is a part of each call. Default: the id.", textSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.Function = r.nonEmpty(n) }},
		word[Declaration]{"param", "A value that the handler gets with each call.", schema{}, func(r *reader, n *yaml.Node, d *Declaration) { d.Param = r.value(n); d.HasParam = true }},
		word[Declaration]{"run", "A program that is executed for each call, with its arguments. There is no shell.", commandSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.Run.Command = r.command(n) }},
		word[Declaration]{"environment", "The names of variables of the operator that the program of run gets, besides PATH, HOME, LANG, LC_ALL, TMPDIR, and TZ.", listSchema(textSchema()), func(r *reader, n *yaml.Node, d *Declaration) { d.Run.Environment = r.names(n) }},
		word[Declaration]{"variables", "More variables of the program of run, with their values.", mapSchema(textSchema()), func(r *reader, n *yaml.Node, d *Declaration) { d.Run.Variables = r.variables(n) }},
		word[Declaration]{"worker", "The name of the worker that handles the calls.", textSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.Worker = r.nonEmpty(n) }},
		word[Declaration]{"url", "The address to which each call is posted.", textSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.Service.URL = r.nonEmpty(n) }},
		word[Declaration]{"tls", "Certificates for the address of url.", tlsWords.schema(), func(r *reader, n *yaml.Node, d *Declaration) { decodeWords(r, n, tlsWords, &d.Service, "tls") }},
		word[Declaration]{"bearerTokenFile", "A file with a token for the address of url. It is read for each call.", textSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.Service.BearerTokenFile = r.nonEmpty(n) }},
	),
	of(calledKinds,
		word[Declaration]{"callTimeout", "How long one call may take. Default: the callTimeout of limits.", durationSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.CallTimeout = r.positive(n) }},
	),
	of(readingKinds,
		word[Declaration]{"indices", "The names of the indices that the handler gets with each call, as they are when the call begins.", textsSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.Indices = r.texts(n) }},
	),
	of(objectKinds,
		word[Declaration]{"labels", "Call the handler only for objects whose labels match all filters.", mapSchema(refSchema("filter")), func(r *reader, n *yaml.Node, d *Declaration) { d.Labels = r.matchers(n, "labels") }},
		word[Declaration]{"annotations", "Call the handler only for objects whose annotations match all filters.", mapSchema(refSchema("filter")), func(r *reader, n *yaml.Node, d *Declaration) { d.Annotations = r.matchers(n, "annotations") }},
	),
	of(fieldKinds,
		word[Declaration]{"field", "Call the handler only for objects with this field, and for updates only if it has changed: spec.size, or /metadata/labels/example.com~1role.", textSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.Field = r.nonEmpty(n) }},
		word[Declaration]{"value", "Call the handler only if the value of the field matches: for updates, before or after the change.", refSchema("filter"), func(r *reader, n *yaml.Node, d *Declaration) { d.Value = r.matcher(n) }},
	),
	of(updateKinds,
		word[Declaration]{"old", "Call the handler only if the value of the field before the change matches.", refSchema("filter"), func(r *reader, n *yaml.Node, d *Declaration) { d.Old = r.matcher(n) }},
		word[Declaration]{"new", "Call the handler only if the value of the field after the change matches.", refSchema("filter"), func(r *reader, n *yaml.Node, d *Declaration) { d.New = r.matcher(n) }},
	),
	of(retriedKinds,
		word[Declaration]{"errors", "How to treat errors that are neither temporary nor permanent. Default: temporary; for an index, ignored.", enumSchema("temporary", "permanent", "ignored"), func(r *reader, n *yaml.Node, d *Declaration) {
			d.Errors = r.choice(n, "temporary", "permanent", "ignored")
		}},
		word[Declaration]{"retries", "The number of attempts in all: 1 is one call and no retry. Default: no limit.", numberSchema(1), func(r *reader, n *yaml.Node, d *Declaration) { d.Retries = r.number(n, 1) }},
		word[Declaration]{"timeout", "How long all attempts of the handler may take, with the pauses between them. Default: no limit.", durationSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.Timeout = r.duration(n) }},
		word[Declaration]{"backoff", "The pause after an error that is neither temporary nor permanent. Default: the setting execution.backoff, 60s.", durationSchema(), func(r *reader, n *yaml.Node, d *Declaration) { pause := r.duration(n); d.Backoff = &pause }},
		word[Declaration]{"exponentialBackoff", "A pause that doubles after each attempt, from the first to the longest one.", backoffWords.schema(), func(r *reader, n *yaml.Node, d *Declaration) {
			d.ExponentialBackoff = &ExponentialBackoff{}
			given := decodeWords(r, n, backoffWords, d.ExponentialBackoff, "exponentialBackoff")
			if !given["first"] || !given["longest"] {
				r.problem(n, "exponentialBackoff has the first and the longest pause: {first: 1s, longest: 5m}")
			}
		}},
	),
	of(limitedKinds,
		word[Declaration]{"limit", "How many calls of the handler run at the same time, for all objects. Default: no limit.", numberSchema(1), func(r *reader, n *yaml.Node, d *Declaration) { d.Limit = r.number(n, 1) }},
	),
	of(changeKinds,
		word[Declaration]{"after", "Call the handler only when the handlers with these ids have succeeded for the same change.", textsSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.After = r.texts(n) }},
		word[Declaration]{"afterFailure", "Call the handler only when one of the handlers with these ids has failed for good.", textsSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.AfterFailure = r.texts(n) }},
	),
	of(revisionKinds,
		word[Declaration]{"revision", "A name for the revision of the handler: objects that were handled under another one are handled again.", textSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.Revision = r.nonEmpty(n) }},
		word[Declaration]{"baseline", "Objects that were handled before the handler had a revision count as handled.", flagSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.Baseline = r.flag(n) }},
	),
	of(revisionKinds,
		word[Declaration]{"rollout", "The steps in which objects are handled again after a change of the revision: numbers of objects, and percentages such as 10%. The last one is repeated. Default: all objects at once.", rolloutSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.Rollout = r.rollout(n) }},
	),
	of([]Kind{Delete},
		word[Declaration]{"optional", "Do not keep objects from being deleted: no finalizer is added, so deletions can be missed.", flagSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.Optional = r.flag(n) }},
		word[Declaration]{"holdOnFailure", "Keep the object if the handler fails for good. By default, it is released.", flagSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.HoldOnFailure = r.flag(n) }},
	),
	of([]Kind{Resume, Daemon, Child},
		word[Declaration]{"deleted", "Also call the handler for objects that are being deleted; a handler of children, for parents that are. A daemon runs until its object is gone, and does not hold it.", flagSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.Deleted = r.flag(n) }},
	),
	of(backgroundKinds,
		word[Declaration]{"initialDelay", "Delay the first call each time the timer or daemon starts.", durationSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.InitialDelay = r.duration(n) }},
	),
	of(idleKinds,
		word[Declaration]{"idle", "Call the handler only after the object has not changed for that time.", durationSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.Idle = r.duration(n) }},
	),
	of([]Kind{Timer},
		word[Declaration]{"interval", "The time from the end of one call to the start of the next.", durationSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.Interval = r.positive(n) }},
		word[Declaration]{"sharp", "Measure the interval from the start of one call to the start of the next.", flagSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.Sharp = r.flag(n) }},
		word[Declaration]{"schedule", "Times of the clock, as for cron: 0 3 * * *, or @daily.", textSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.Schedule = r.nonEmpty(n) }},
		word[Declaration]{"timeZone", "The time zone of the schedule. Default: UTC.", textSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.TimeZone = r.nonEmpty(n) }},
		word[Declaration]{"catchUp", "How many missed runs of the schedule are made up for. Default: 1.", numberSchema(0), func(r *reader, n *yaml.Node, d *Declaration) { runs := r.number(n, 0); d.CatchUp = &runs }},
	),
	of([]Kind{Daemon},
		word[Declaration]{"wakeOn", "Fields whose changes are sent to the daemon.", textsSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.WakeOn = r.texts(n) }},
		word[Declaration]{"watchChildren", "The resources of children of the object whose changes are sent to the daemon.", listSchema(refSchema("resource")), func(r *reader, n *yaml.Node, d *Declaration) {
			for _, item := range r.list(n, "watchChildren") {
				d.WatchChildren = append(d.WatchChildren, r.resource(item))
			}
		}},
		word[Declaration]{"cancellationBackoff", "How long a daemon may take to stop by itself before it is canceled. It requires cancellationTimeout.", durationSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.CancellationBackoff = r.duration(n) }},
		word[Declaration]{"cancellationTimeout", "How long a daemon may take to stop after it was canceled. Default: a daemon that must stop is not canceled.", durationSchema(), func(r *reader, n *yaml.Node, d *Declaration) {
			limit := r.duration(n)
			d.CancellationTimeout = &limit
		}},
		word[Declaration]{"cancellationPolling", "The interval of the warnings about a daemon that does not stop.", durationSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.CancellationPolling = r.duration(n) }},
	),
	of([]Kind{Daemon, Child},
		word[Declaration]{"childLabel", "The label of the children whose value is the uid of their parent. Default: they have owner references.", textSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.ChildLabel = r.nonEmpty(n) }},
	),
	of([]Kind{Child},
		word[Declaration]{"children", "The resource of the children whose changes the handler is called for.", refSchema("resource"), func(r *reader, n *yaml.Node, d *Declaration) { d.Children = r.resource(n) }},
	),
	of([]Kind{Drift},
		word[Declaration]{"ensuredBy", "The ids of the ensure handlers whose children the handler is called for. Default: all of the resource.", textsSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.EnsuredBy = r.texts(n) }},
	),
	of([]Kind{Convert},
		word[Declaration]{"from", "The version that the objects have: v1alpha1.", textSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.From = r.nonEmpty(n) }},
		word[Declaration]{"to", "The version that the objects get.", textSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.To = r.nonEmpty(n) }},
	),
	of(admissionKinds,
		word[Declaration]{"operations", "The operations that are reviewed. Default: CREATE and UPDATE.", listSchema(enumSchema("CREATE", "UPDATE", "DELETE", "CONNECT")), func(r *reader, n *yaml.Node, d *Declaration) {
			for _, item := range r.list(n, "operations") {
				d.Operations = append(d.Operations, r.choice(item, "CREATE", "UPDATE", "DELETE", "CONNECT"))
			}
		}},
		word[Declaration]{"subresource", "The subresource that is reviewed, such as status, or *.", textSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.Subresource = r.nonEmpty(n) }},
		word[Declaration]{"sideEffects", "The handler has effects elsewhere, except in dry runs.", flagSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.SideEffects = r.flag(n) }},
		word[Declaration]{"ignoreFailures", "Admit requests if the operator does not answer.", flagSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.IgnoreFailures = r.flag(n) }},
		word[Declaration]{"persistent", "Keep the webhook when the operator ends.", flagSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.Persistent = r.flag(n) }},
	),
	of([]Kind{Ensure},
		word[Declaration]{"allowEmpty", "Accept that the handler returns no children although some exist.", flagSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.AllowEmpty = r.flag(n) }},
		word[Declaration]{"adoptExisting", "Take over objects that exist already.", flagSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.AdoptExisting = r.flag(n) }},
		word[Declaration]{"waitReady", "Apply the children of a wave only when those of the earlier waves are ready.", flagSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.WaitReady = r.flag(n) }},
		word[Declaration]{"prune", "Protected kinds whose children are deleted when they are no longer returned.", textsSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.Prune = r.texts(n) }},
		word[Declaration]{"recreate", "Kinds whose children are deleted and created again if a change is refused.", textsSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.Recreate = r.texts(n) }},
		word[Declaration]{"watchIndices", "The names of the indices whose changes call the handler for all its objects.", textsSchema(), func(r *reader, n *yaml.Node, d *Declaration) { d.WatchIndices = r.texts(n) }},
	),
)

var tlsWords = words[Service]{
	{"certificateAuthority", "A file with the certificates that sign that of the service. Default: those of the system.", textSchema(), func(r *reader, n *yaml.Node, s *Service) { s.CertificateAuthority = r.nonEmpty(n) }},
	{"certificate", "A file with the certificate of the operator.", textSchema(), func(r *reader, n *yaml.Node, s *Service) { s.Certificate = r.nonEmpty(n) }},
	{"key", "A file with the key of the certificate.", textSchema(), func(r *reader, n *yaml.Node, s *Service) { s.Key = r.nonEmpty(n) }},
}

var backoffWords = words[ExponentialBackoff]{
	{"first", "The first pause.", durationSchema(), func(r *reader, n *yaml.Node, b *ExponentialBackoff) { b.First = r.positive(n) }},
	{"longest", "The longest pause.", durationSchema(), func(r *reader, n *yaml.Node, b *ExponentialBackoff) { b.Longest = r.positive(n) }},
}

// kindWord is the word of a kind, with what it declares.
type kindWord struct {
	kind  Kind
	about string
}

var kindWords = []kindWord{
	{Create, "The resource whose new objects the handler is called for."},
	{Update, "The resource whose changed objects the handler is called for."},
	{Delete, "The resource whose objects the handler is called for when they are deleted."},
	{Resume, "The resource whose objects the handler is called for when the operator starts."},
	{Change, "The resource of the objects with a field, which is required, that the handler is called for when it has changed, or is there when the object is created or the operator starts."},
	{Event, "The resource whose watch events the handler is called for."},
	{Timer, "The resource for whose objects the handler is called again and again."},
	{Daemon, "The resource of the objects for which the handler runs as long as they exist."},
	{Index, "The resource whose objects the handler returns keys and values of. The id is the name of the index."},
	{Child, "The resource of the parents that the handler is called for when their children change. The operator needs settings.name."},
	{Ensure, "The resource of the objects whose children the handler returns. The operator needs settings.name."},
	{Drift, "The resource of the parents whose ensured children others have changed: the handler decides which changes stay."},
	{Validate, "The resource whose objects the handler validates before they are stored."},
	{Mutate, "The resource whose objects the handler changes before they are stored."},
	{Convert, "The custom resource whose objects the handler converts from one version to another."},
	{Startup, "true: the handler is called when the operator starts."},
	{Cleanup, "true: the handler is called when the operator ends."},
	{Probe, "true: the handler is called for the health endpoint."},
}

func isKind(name string) bool {
	return slices.ContainsFunc(kindWords, func(w kindWord) bool { return string(w.kind) == name })
}

// wordsOf returns the words that a kind of handlers can have.
func wordsOf(kind Kind) words[Declaration] {
	var all words[Declaration]
	for _, o := range options {
		if slices.Contains(o.kinds, kind) && (kind != Subhandler || !slices.Contains(targetWords, o.name)) {
			all = append(all, o.word)
		}
	}
	return all
}

// targetWords are the words about who is called: sub-handlers are called as their parents are.
var targetWords = []string{"run", "environment", "variables", "worker", "url", "tls", "bearerTokenFile", "callTimeout"}

// decodeDeclaration decodes one handler. It returns nil if its kind is unknown.
func decodeDeclaration(r *reader, n *yaml.Node, place string) *Declaration {
	n = resolve(n)
	if n.Kind != yaml.MappingNode {
		r.problem(n, "a handler must be a mapping, such as {create: kopfexamples, id: create_fn, run: [./create.sh]}, not %s", describe(n))
		return nil
	}
	d := &Declaration{Place: place}
	var known []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		if name := n.Content[i].Value; isKind(name) {
			if d.Kind != "" && string(d.Kind) != name {
				r.problem(n.Content[i], "a handler is declared by one word, not by %s and %s: use two handlers with the same id", d.Kind, name)
				return nil
			}
			d.Kind = Kind(name)
		} else {
			known = append(known, name)
		}
	}
	if d.Kind == "" {
		r.problem(n, "the handler does not say what it is for%s", suggestKind(known))
		return nil
	}
	decodeOptions(r, n, d)
	return d
}

// suggestKind returns what is missing in a declaration with these words.
func suggestKind(given []string) string {
	var names []string
	for _, w := range kindWords {
		names = append(names, string(w.kind))
	}
	for _, word := range given {
		if slices.ContainsFunc(options, func(o option) bool { return o.name == word }) {
			continue
		}
		if text := suggest(word, names, ""); text != "" {
			return fmt.Sprintf(", and has an unknown word, %s%s", word, text)
		}
	}
	return ": add the resource by one of the words create, update, delete, resume, change, event, timer, daemon, index, child, ensure, drift, validate, mutate, and convert"
}

// decodeOptions decodes the words of a declaration whose kind is known.
func decodeOptions(r *reader, n *yaml.Node, d *Declaration) {
	known := wordsOf(d.Kind)
	for i := 0; i+1 < len(n.Content); i += 2 { // for messages about the other words
		if value := resolve(n.Content[i+1]); n.Content[i].Value == "id" && value.Tag == "!!str" {
			d.ID = value.Value
		}
	}
	given := map[string]bool{}
	r.each(n, "the handler", func(key, value *yaml.Node) {
		given[key.Value] = true
		switch w := known.named(key.Value); {
		case key.Value == string(d.Kind):
			r.kind(value, d)
		case w != nil:
			w.set(r, value, d)
		default:
			r.refuse(key, d, known)
		}
	})
	if d.ID == "" && d.Function != "" {
		d.ID = d.Function
	}
	r.checkDeclaration(n, d, given)
}

// kind decodes the value of the word that declares the handler.
func (r *reader) kind(n *yaml.Node, d *Declaration) {
	if slices.Contains(activityKinds, d.Kind) {
		if !r.flag(n) {
			r.problem(n, "%s: write %s: true", d, d.Kind)
		}
		return
	}
	d.Resource = r.resource(n)
}

// refuse reports a word that the kind of the handler does not have.
func (r *reader) refuse(key *yaml.Node, d *Declaration, known words[Declaration]) {
	for _, o := range options {
		if o.name != key.Value {
			continue
		}
		var kinds []string
		for _, kind := range o.kinds {
			kinds = append(kinds, string(kind))
		}
		if d.Kind == Subhandler {
			r.problem(key, "%s cannot have %s: it is called as its parent", d, key.Value)
		} else {
			r.problem(key, "%s cannot have %s, which is for %s", d, key.Value, listOf(kinds))
		}
		return
	}
	r.problem(key, "%s has an unknown word, %s%s", d, key.Value, suggest(key.Value, known.names(), ""))
}

// checkDeclaration checks what concerns several words.
func (r *reader) checkDeclaration(n *yaml.Node, d *Declaration, given map[string]bool) {
	needs := func(word string, one ...string) {
		if given[word] && !slices.ContainsFunc(one, func(name string) bool { return given[name] }) {
			r.problem(n, "%s has %s without %s", d, word, listOf(one))
		}
	}
	if d.ID == "" && !given["id"] {
		r.problem(n, "%s has no id: add id: my_handler", d)
	}
	if d.Kind == Change && !given["field"] {
		r.problem(n, "%s has no field: add field: spec.size, for example", d)
	}
	if d.Kind == Child && !given["children"] {
		r.problem(n, "%s has no children: add children: pods, for example", d)
	}
	if d.Kind == Convert && !(given["from"] && given["to"]) {
		r.problem(n, "%s needs both versions: add from: v1alpha1 and to: v1, for example", d)
	}
	needs("value", "field")
	needs("old", "field")
	needs("new", "field")
	needs("timeZone", "schedule")
	needs("catchUp", "schedule")
	needs("sharp", "interval")
	needs("environment", "run")
	needs("variables", "run")
	needs("tls", "url")
	needs("bearerTokenFile", "url")
	needs("baseline", "revision")
	needs("rollout", "revision")
	if d.Kind == Daemon {
		needs("childLabel", "watchChildren")
	}
}

// listOf lists words in a sentence.
func listOf(all []string) string {
	text := ""
	for i, each := range all {
		switch {
		case i == 0:
		case i == len(all)-1 && i == 1:
			text += " or "
		case i == len(all)-1:
			text += ", or "
		default:
			text += ", "
		}
		text += each
	}
	return text
}

// rollout decodes the steps of a rollout.
func (r *reader) rollout(n *yaml.Node) []rollout.Step {
	var steps []rollout.Step
	for _, item := range r.list(n, "rollout") {
		item = resolve(item)
		text, isPercentage := strings.CutSuffix(item.Value, "%")
		percent, err := strconv.Atoi(text)
		switch {
		case !isPercentage || item.Kind != yaml.ScalarNode:
			steps = append(steps, rollout.Then(r.number(item, 1)))
		case err != nil || percent < 1 || percent > 100:
			r.problem(item, "the step %s is no percentage from 1%% to 100%%", item.Value)
		default:
			steps = append(steps, rollout.ThenPercent(percent))
		}
	}
	if len(steps) == 0 && !r.failed() {
		r.problem(n, "the rollout has no steps: write [5, 10%%], or leave it out to handle all objects at once")
	}
	return steps
}

// resource decodes a resource: a text as for kubectl, a list as for kopf.Resource, or a mapping.
func (r *reader) resource(n *yaml.Node) selector.Selector {
	n = resolve(n)
	var sel selector.Selector
	switch n.Kind {
	case yaml.MappingNode:
		fields := selector.Fields{}
		decodeWords(r, n, resourceWords, &fields, "the resource")
		sel = selector.By(fields)
	case yaml.SequenceNode:
		var parts []string
		for _, item := range r.list(n, "the resource") {
			parts = append(parts, r.text(item)) // the core group is empty
		}
		sel = selector.New(parts...)
	default:
		name := r.nonEmpty(n)
		if name == "" {
			return sel
		}
		sel = selector.New(name)
	}
	if err := sel.Err(); err != nil {
		r.problem(n, "%v", err)
	}
	return sel
}

var resourceWords = words[selector.Fields]{
	{"group", "The group. Default: any.", textSchema(), func(r *reader, n *yaml.Node, f *selector.Fields) { f.Group = r.nonEmpty(n) }},
	{"version", "The version. Default: the preferred one.", textSchema(), func(r *reader, n *yaml.Node, f *selector.Fields) { f.Version = r.nonEmpty(n) }},
	{"kind", "The kind, such as Pod.", textSchema(), func(r *reader, n *yaml.Node, f *selector.Fields) { f.Kind = r.nonEmpty(n) }},
	{"plural", "The plural, such as pods.", textSchema(), func(r *reader, n *yaml.Node, f *selector.Fields) { f.Plural = r.nonEmpty(n) }},
	{"singular", "The singular, such as pod.", textSchema(), func(r *reader, n *yaml.Node, f *selector.Fields) { f.Singular = r.nonEmpty(n) }},
	{"shortName", "A short name, such as po.", textSchema(), func(r *reader, n *yaml.Node, f *selector.Fields) { f.ShortName = r.nonEmpty(n) }},
	{"category", "A category, such as all.", textSchema(), func(r *reader, n *yaml.Node, f *selector.Fields) { f.Category = r.nonEmpty(n) }},
}

// CheckIndices returns the mistakes of declarations that name unknown indices.
func CheckIndices(declared []*Declaration, known []string) error {
	r := &reader{}
	for _, d := range declared {
		for _, name := range slices.Concat(d.Indices, d.WatchIndices) {
			if !slices.Contains(known, name) {
				r.errs = append(r.errs, fmt.Errorf("%s: %s is about the index %q, which is not declared%s", d.Place, d, name, suggest(name, known, "add a handler with index: and this id")))
			}
		}
	}
	return r.mistakes()
}

// ParseHello parses the handlers that a worker declares: a list in JSON, as in a file, each with its place if the worker
// knows that. They are called by the worker itself. The folder is where relative places begin.
func ParseHello(of *Worker, dir string, data json.RawMessage) ([]*Declaration, error) {
	return parseList(data, func(r *reader, n *yaml.Node, i int) *Declaration {
		r.prefix = fmt.Sprintf("the worker %s, handler %d", of.Name, i+1)
		if of.Place != "" {
			r.prefix = of.Place + ", " + r.prefix
		}
		r.takePlace(n, dir)
		d := decodeDeclaration(r, n, r.prefix)
		if d == nil {
			return nil
		}
		if len(d.Run.Command) > 0 || d.Worker != "" || d.Service.URL != "" {
			r.problem(n, "%s has run, worker, or url, but the worker that declares it is called: leave it out", d)
		}
		d.Worker = of.Name
		return d
	})
}

// ParseSubhandlers parses the sub-handlers that the answer of a handler declares: a list in JSON.
func ParseSubhandlers(parent, dir string, data json.RawMessage) ([]*Declaration, error) {
	if len(data) == 0 {
		return nil, nil
	}
	return parseList(data, func(r *reader, n *yaml.Node, i int) *Declaration {
		r.prefix = fmt.Sprintf("%s, sub-handler %d", parent, i+1)
		n = resolve(n)
		if n.Kind != yaml.MappingNode {
			r.problem(n, "a sub-handler must be an object, such as {\"id\": \"item\"}, not %s", describe(n))
			return nil
		}
		d := &Declaration{Kind: Subhandler, Place: parent}
		if r.takePlace(n, dir) {
			d.Place = r.prefix
		}
		decodeOptions(r, n, d)
		return d
	})
}

// takePlace takes the word place out of a declaration, so that messages begin with it. It reports whether there is one.
func (r *reader) takePlace(n *yaml.Node, dir string) bool {
	for i := 0; i+1 < len(n.Content) && n.Kind == yaml.MappingNode; i += 2 {
		if n.Content[i].Value != "place" {
			continue
		}
		place := r.nonEmpty(n.Content[i+1])
		n.Content = slices.Delete(n.Content, i, i+2)
		if place == "" {
			return false
		}
		if !filepath.IsAbs(place) {
			place = filepath.Join(dir, place)
		}
		r.prefix = place
		return true
	}
	return false
}

// parseList parses a list of declarations in JSON.
func parseList(data json.RawMessage, parse func(*reader, *yaml.Node, int) *Declaration) ([]*Declaration, error) {
	if !json.Valid(data) {
		return nil, errors.New("the declarations are not valid JSON")
	}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil || len(root.Content) == 0 {
		return nil, fmt.Errorf("the declarations cannot be parsed: %w", err)
	}
	r := &reader{prefix: "the declarations"}
	var all []*Declaration
	for i, item := range r.list(root.Content[0], "the handlers") {
		if d := parse(r, item, i); d != nil {
			all = append(all, d)
		}
	}
	return all, r.mistakes()
}
