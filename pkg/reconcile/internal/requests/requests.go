// Package requests honors the requests that people attach to objects as annotations. It finds
// the new ones, applies them to the progress of the handlers, and says what the outcomes are. The
// values that were honored are stored by the same write as the progress.
package requests

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/internal/request"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/storage"
)

// Reader finds the requests of objects.
type Reader struct {
	handled, suspend string // names of annotations
	prefix           string // of the annotations of requests
	verbs            map[request.Verb]string
}

// verbs are the verbs of requests about handlers.
var verbs = []request.Verb{request.Retry, request.Rerun, request.Skip}

// NewReader returns a Reader of annotations with the prefix.
func NewReader(prefix string) *Reader {
	r := &Reader{handled: prefix + "/" + request.Handled, suspend: prefix + "/" + request.Suspend.Name(), prefix: prefix + "/" + request.Verb("").Name(), verbs: map[request.Verb]string{}}
	for _, verb := range verbs {
		r.verbs[verb] = prefix + "/" + verb.Name()
	}
	return r
}

// Annotation returns the name of the annotation for the verb.
func (r *Reader) Annotation(verb request.Verb) string { return r.verbs[verb] }

// Suspension is a request to suspend an object.
type Suspension struct {
	Active bool
	Until  time.Time // zero if it has no end
	Err    error     // why the request is ignored
}

// Suspension returns whether the object is suspended now. A nil Reader suspends nothing.
func (r *Reader) Suspension(body *object.Body, now time.Time) Suspension {
	if r == nil || storage.HasCopiedAnnotations(body) {
		return Suspension{}
	}
	value, present := body.Annotation(r.suspend)
	if !present {
		return Suspension{}
	}
	until, err := request.ParseSuspension(value)
	return Suspension{Active: err == nil && (until.IsZero() || now.Before(until)), Until: until, Err: err}
}

// Requests are the requests of one version of an object.
type Requests struct {
	fresh   []request.Request
	skipped bool
	rerun   []string // handlers of honored requests to rerun
	running []string // those of them that have not ended
	handled map[request.Verb]string
	path    string

	// Notes are the outcomes of the new requests.
	Notes []Note
}

// Note is the outcome of a request.
type Note struct {
	Value string
	// Verb and Handler are what is requested. The handler is empty if the request cannot be read.
	Verb    request.Verb
	Handler string
	Refused bool
	// Problem is why it is refused, without the advice to send Instead.
	Problem string
	// Instead is the request that the message advises to send; empty for none.
	Instead request.Verb
	Message string
	// Expected is the message as long as no operator has honored the request.
	Expected string
}

// Advice says what sending the other request is good for.
func (n Note) Advice() string { return advice[n.Instead] }

// advice says what requests are good for.
var advice = map[request.Verb]string{request.Retry: "to call it now", request.Rerun: "to call it again"}

// Read returns the requests of the object, or nil if it never had any. A nil Reader finds
// none.
func (r *Reader) Read(body *object.Body) *Requests {
	if r == nil || storage.HasCopiedAnnotations(body) {
		return nil
	}
	text, ever := body.Annotation(r.handled)
	for _, annotation := range r.verbs {
		_, present := body.Annotation(annotation)
		ever = ever || present
	}
	if !ever {
		return nil // nearly always
	}
	requests := &Requests{path: r.handled, handled: request.ParseHandled(text)}
	requests.rerun = append(requests.handlersOf(request.Rerun), requests.handlersOf(earlier)...)
	for _, verb := range verbs {
		value, present := body.Annotation(r.verbs[verb])
		if !present || value == requests.handled[verb] {
			continue
		}
		if requests.handled == nil {
			requests.handled = map[request.Verb]string{}
		}
		requests.handled[verb] = value
		parsed, err := request.Parse(verb, value)
		if err != nil {
			requests.answer(parsed, "", fmt.Sprintf("The request to %s", verb), refused, fmt.Sprintf(": %s.", err))
			continue
		}
		requests.fresh = append(requests.fresh, parsed)
	}
	return requests
}

// earlier is the key of handlers that an earlier request than the last one reruns, and that had not ended when that was
// honored.
const earlier request.Verb = "rerun-earlier"

// handlersOf returns the handlers of an honored request.
func (r *Requests) handlersOf(verb request.Verb) []string {
	last, _ := request.Parse(verb, r.handled[verb]) // one that cannot be read has none
	return last.Handlers
}

// answer adds the outcome of a request: the subject is refused, for example.
func (r *Requests) answer(of request.Request, id, subject, outcome, rest string) {
	r.Notes = append(r.Notes, Note{
		Value: string(of.Verb) + " " + of.Value, Verb: of.Verb, Handler: id, Refused: outcome == refused,
		Message: subject + " is " + outcome + rest, Expected: subject + " will be " + outcome + " by a running operator" + rest,
	})
}

const refused = "refused"

// Record returns the annotation that records the new requests as honored, and its value, after
// Apply has answered them. It returns nothing if there are none.
func (r *Requests) Record() (annotation, value string) {
	if r == nil || len(r.Notes) == 0 {
		return "", ""
	}
	delete(r.handled, earlier)
	if len(r.running) > 0 {
		r.handled[earlier] = strings.Join(append([]string{"-"}, r.running...), " ")
	}
	return r.path, request.FormatHandled(r.handled)
}

// Reruns returns the ids of the handlers that must be called although nothing has happened to
// the object: those of a new request, and those of an honored one that have not ended.
func (r *Requests) Reruns(progress *call.Progress) []string {
	if r == nil {
		return nil
	}
	var ids []string
	for _, fresh := range r.fresh {
		if fresh.Verb == request.Rerun {
			ids = append(ids, fresh.Handlers...)
		}
	}
	for _, id := range r.rerun {
		if isResuming(progress, id) && !slices.Contains(ids, id) {
			ids = append(ids, id)
			r.running = append(r.running, id)
		}
	}
	return ids
}

// isResuming reports whether a handler has begun to resume, and has not ended. It loads no
// records under the names that people write into requests.
func isResuming(progress *call.Progress, id string) bool {
	if !progress.Has(id) {
		return false
	}
	stored := progress.Load(id).Stored()
	return stored != nil && !stored.Finished() && stored.Purpose == cause.Resume
}

// Handlers are those that a request can be about.
type Handlers struct {
	// Selected are the handlers for what has happened to the object, if anything has.
	Selected registry.Handlers
	// Declared are all handlers of the resource.
	Declared registry.Handlers
}

// Apply applies the new requests to the handlers of a cycle.
func (r *Requests) Apply(progress *call.Progress, handlers Handlers, reason cause.Reason) {
	if r == nil {
		return
	}
	for _, fresh := range r.fresh {
		for _, id := range fresh.Handlers {
			problem := handlers.whyNot(fresh.Verb, id, progress, reason)
			if problem == nil {
				problem = apply(fresh, id, progress, reason)
			}
			if problem != nil {
				r.answer(fresh, id, fmt.Sprintf("The request to %s the handler %s", fresh.Verb, id), refused, ": "+problem.String())
				note := &r.Notes[len(r.Notes)-1]
				note.Problem = sentence(problem.why)
				note.Instead = problem.instead
				continue
			}
			if fresh.Verb == request.Skip {
				r.skipped = true
			}
			r.answer(fresh, id, "The handler "+id, outcomes[fresh.Verb], " as requested.")
		}
	}
}

// HasSkipped reports whether a handler was skipped.
func (r *Requests) HasSkipped() bool { return r != nil && r.skipped }

// problem is why a request is refused, and which one could be sent instead; it is nil if there is none.
type problem struct {
	why     string
	instead request.Verb
}

// because returns a problem without another request.
func because(format string, arguments ...any) *problem {
	return &problem{why: fmt.Sprintf(format, arguments...)}
}

// or adds another request.
func (p *problem) or(instead request.Verb) *problem {
	p.instead = instead
	return p
}

// String returns a sentence.
func (p *problem) String() string {
	if p.instead == "" {
		return sentence(p.why)
	}
	return fmt.Sprintf("%s; %s, use %s.", p.why, advice[p.instead], p.instead.Name())
}

// sentence ends a text with a full stop, unless it is a question.
func sentence(text string) string {
	if strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}

var outcomes = map[request.Verb]string{request.Retry: "called now", request.Rerun: "called again", request.Skip: "skipped"}

// apply applies one request to one handler. It returns why it cannot, or nil.
func apply(r request.Request, id string, progress *call.Progress, reason cause.Reason) *problem {
	ended := progress.Load(id).HasEnded(reason)
	switch {
	case r.Verb == request.Retry && ended && progress.Load(id).Failure:
		return because("it has failed for good").or(request.Rerun)
	case r.Verb == request.Retry && ended:
		return because("it has ended already").or(request.Rerun)
	case r.Verb == request.Retry && progress.Load(id).RemainingDelay(time.Now()) == 0:
		return because("it does not wait for its next attempt")
	case r.Verb == request.Retry:
		progress.Retry(id)
	case r.Verb == request.Rerun && progress.Load(id).RemainingDelay(time.Now()) > 0:
		return because("it has not ended, and waits for its next attempt").or(request.Retry)
	case r.Verb == request.Rerun && !ended && progress.Load(id).Stored() != nil:
		return because("it has not ended yet, and is called anyway")
	case r.Verb == request.Rerun:
		progress.Rerun(id, reason)
	case reason == cause.Delete && !r.Abandon:
		return because("nothing would clean up for it; add the word %s to the value if you want that", request.Abandon)
	case ended && !progress.Load(id).Failure:
		return because("it has succeeded already")
	default:
		progress.Skip(id, reason)
	}
	return nil
}

// annotationsPath is the path of the annotations in an object.
var annotationsPath = object.Path{"metadata", "annotations"}

// Mistyped returns notes on annotations with a name that is similar to that of a request. They
// are not recorded on the object, because others may use such names: a handler with the id
// request-retries has its progress there. A nil Reader finds none.
func (r *Reader) Mistyped(body *object.Body) (notes []Note) {
	if r == nil || storage.HasCopiedAnnotations(body) {
		return nil
	}
	found, _ := body.Lookup(annotationsPath)
	annotations, _ := found.(map[string]any)
	for name, content := range annotations {
		verb, isLike := strings.CutPrefix(name, r.prefix)
		value, isText := content.(string)
		if !isLike || !isText || strings.HasPrefix(value, "{") {
			continue // nearly always; or a record
		}
		if meant := request.SuggestVerb(verb); meant != "" {
			message := fmt.Sprintf("There is no request with the annotation %s; did you mean %s?", name, meant.Name())
			notes = append(notes, Note{Value: verb + " " + value, Refused: true, Message: message})
		}
	}
	slices.SortFunc(notes, func(a, b Note) int { return strings.Compare(a.Value, b.Value) })
	return notes
}
