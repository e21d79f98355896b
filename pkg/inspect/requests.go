package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/request"
	"github.com/kopf-go/kopf/internal/verdict"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/inspection"
	"github.com/kopf-go/kopf/pkg/storage"
)

// Request is a request of a person to the operator about one object.
type Request struct {
	Verb    request.Verb
	Handler string
	// Abandon lets deletion handlers be skipped.
	Abandon bool
	// Until is the end of a suspension; zero for none. Remove ends the suspension.
	Until  time.Time
	Remove bool
}

// Send writes a request to an object with the configuration, unless it is certain that the operator
// would refuse it. It returns what will happen.
func (c *Cluster) Send(ctx context.Context, writing *rest.Config, t Target, r Request) (string, error) {
	found, obj, err := c.get(ctx, t)
	if err != nil {
		return "", err
	}
	if c.Settings.Requests.Disabled {
		return "", errors.New("the operator ignores requests: Settings.Requests.Disabled is set")
	}
	stored := c.Settings.WithDefaults().Persistence
	prefix := storage.RequestPrefix(stored.DiffBase, stored.Progress)
	annotation := prefix + "/" + r.Verb.Name()
	earlier, isRequested := obj.GetAnnotations()[annotation]

	var value any // nil removes the annotation
	var text string
	switch {
	case r.Remove && !isRequested:
		return fmt.Sprintf("%s/%s is not suspended: nothing was written.", t.Kind, t.Name), nil
	case r.Remove:
		text = unsuspension(t, earlier)
	case r.Verb == request.Suspend && r.Until.IsZero():
		value = request.Forever
		text = fmt.Sprintf("%s/%s is suspended until you end it: no handlers are called, and its deletion is held.", t.Kind, t.Name)
	case r.Verb == request.Suspend:
		value = r.Until.UTC().Format(time.RFC3339)
		text = fmt.Sprintf("%s/%s is suspended until %s: no handlers are called, and its deletion is held.", t.Kind, t.Name, value)
	default:
		words := []string{time.Now().UTC().Format("20060102T150405.000Z"), r.Handler}
		if r.Abandon {
			words = append(words, request.Abandon)
		}
		requested := strings.Join(words, " ")
		value = requested
		text, err = c.try(ctx, found, obj, annotation, requested, r)
		if err != nil {
			return "", err
		}
		// An earlier request that no operator has honored is lost.
		handled := request.ParseHandled(obj.GetAnnotations()[prefix+"/"+request.Handled])
		lost, err := request.Parse(r.Verb, earlier)
		if isRequested && handled[r.Verb] != earlier && err == nil {
			text += fmt.Sprintf(" It replaces the request to %s %s, which no operator has honored.", r.Verb, strings.Join(lost.Handlers, ", "))
		}
	}

	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{annotation: value}}})
	if err != nil {
		return "", err
	}
	client, err := dynamic.NewForConfig(writing)
	if err != nil {
		return "", err
	}
	var api dynamic.ResourceInterface = client.Resource(found.GVR())
	if found.Namespaced {
		api = client.Resource(found.GVR()).Namespace(obj.GetNamespace())
	}
	if _, err := api.Patch(ctx, obj.GetName(), types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
		return "", fmt.Errorf("the request cannot be written to %s/%s: %w", nameOf(found.Resource), obj.GetName(), err)
	}
	return text, nil
}

// try returns what a pass would make of the request.
func (c *Cluster) try(ctx context.Context, found discovery.SelectedResource, obj *unstructured.Unstructured, annotation, value string, r Request) (string, error) {
	asked := obj.DeepCopy()
	annotations := asked.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotation] = value
	asked.SetAnnotations(annotations)
	n, err := c.inspector.Inspect(ctx, found, asked.Object)
	if err != nil {
		return "", err
	}
	arguments := named(nameOf(found.Resource), obj) + " " + r.Handler
	frozen := c.freezes(ctx, obj.GetNamespace())
	return outcome(n, r, value, frozen, func(verb request.Verb) string { return c.CommandLine.Of(string(verb), arguments) })
}

// unsuspension says what the removal of a request to suspend an object means.
func unsuspension(t Target, requested string) string {
	until, err := request.ParseSuspension(requested)
	switch {
	case err != nil:
		return fmt.Sprintf("%s/%s was not suspended: the request had no effect, and was removed, because %v.", t.Kind, t.Name, err)
	case !until.IsZero() && !until.After(time.Now()):
		return fmt.Sprintf("%s/%s is not suspended: that has ended at %s, and the request was removed.", t.Kind, t.Name, until.UTC().Format(time.RFC3339))
	default:
		return fmt.Sprintf("%s/%s is no longer suspended: a running operator handles what has changed meanwhile as one change.", t.Kind, t.Name)
	}
}

// outcome returns what the operator would make of the request, or an error if it would refuse it.
// The function returns the command for another request about the handler.
func outcome(n *inspection.Object, r Request, value string, frozen freezes, command func(request.Verb) string) (string, error) {
	for _, note := range n.Requests {
		switch {
		case !strings.Contains(note.Value, value):
		case note.Refused:
			return "", refusal(n, r, note, command)
		case n.Suspension.Active:
			return "Requested. The object is suspended: an operator honors the request when that has ended.", nil
		default:
			return willHonor(r, frozen), nil
		}
	}
	declared := slices.ContainsFunc(n.Handlers, func(h inspection.Handler) bool { return h.ID == r.Handler })
	undecidable := slices.ContainsFunc(n.Handlers, func(h inspection.Handler) bool { return h.Undecidable != nil })
	switch {
	case isFree(n):
		return "", refusal(n, r, ofProblem("the object is being deleted without the finalizer of this operator, so no handlers of changes are called for it anymore."), command)
	case !undecidable && !n.InScope:
		return "", refusal(n, r, ofProblem("no handler of changes applies to the object, so the operator leaves it and its requests alone."), command)
	case !declared && !undecidable:
		return "", refusal(n, r, ofProblem("the operator would ignore the request."), command)
	default:
		return "Requested. Whether the operator honors it cannot be decided here: its log and its events on the object will say it.", nil
	}
}

// willHonor says when an operator honors the request.
func willHonor(r Request, frozen freezes) string {
	switch {
	case len(frozen.certain) > 0:
		return fmt.Sprintf("Requested. The operators are paused by %s: one honors the request when that has ended.", strings.Join(frozen.certain, ", "))
	case len(frozen.possible) > 0:
		return fmt.Sprintf("Requested. A running operator will %s the handler %s now, or, if %s pauses it, when that has ended.", r.Verb, r.Handler, strings.Join(frozen.possible, " or "))
	default:
		return fmt.Sprintf("Requested. A running operator will %s the handler %s now.", r.Verb, r.Handler)
	}
}

// refusal says why a request is not written, in the words of the command, and what could be
// requested instead.
func refusal(n *inspection.Object, r Request, note inspection.Note, command func(request.Verb) string) error {
	message := cmp.Or(note.Problem, note.Message)
	message = strings.Replace(message, "the word "+request.Abandon+" to the value", "--"+request.Abandon, 1)
	if _, failed := n.Failed[r.Handler]; failed {
		message = strings.Replace(message, r.Handler+" does not wait for a retry", "it has failed for good", 1)
	}
	other := ""
	if how := note.Advice(); how != "" && slices.Contains(possible(n, note.Instead), r.Handler) {
		other = fmt.Sprintf(" %s%s: %s", strings.ToUpper(how[:1]), how[1:], command(note.Instead))
	}
	handlers := fmt.Sprintf("There is no handler to %s now.", r.Verb)
	if ids := possible(n, r.Verb); len(ids) > 0 {
		handlers = fmt.Sprintf("Handlers to %s now: %s.", r.Verb, strings.Join(ids, ", "))
	}
	return fmt.Errorf("%s %s is refused, and nothing was written: %s %s%s", r.Verb, r.Handler, message, handlers, other)
}

// ofProblem is the note about a request that the operator would not see.
func ofProblem(text string) inspection.Note { return inspection.Note{Problem: text} }

// possible returns the ids of the handlers that a request can be about now.
func possible(n *inspection.Object, verb request.Verb) []string {
	var ids []string
	if isFree(n) {
		return nil
	}
	for _, h := range n.Handlers {
		isOne := h.Kind.IsChange() && h.Undecidable == nil
		switch verb {
		case request.Retry:
			isOne = isOne && h.Selected && h.Verdict.State == verdict.Waiting
		case request.Skip:
			isOne = isOne && h.Selected && h.Verdict.State != verdict.Succeeded && h.Verdict.State != verdict.Skipped
		default:
			isOne = isOne && h.OutOfScope.Matches() && (h.Kind == handler.OnDelete) == (n.Reason == cause.Delete) && !isUnfinished(n, h.ID)
		}
		if isOne && !slices.Contains(ids, h.ID) {
			ids = append(ids, h.ID)
		}
	}
	return append(ids, possibleSubhandlers(n, verb)...)
}

// possibleSubhandlers returns the ids of the sub-handlers that a request can be about now: those with
// a record, of handlers that take part and have not ended.
func possibleSubhandlers(n *inspection.Object, verb request.Verb) []string {
	var ids []string
	for _, h := range n.Handlers {
		if !h.Kind.IsChange() || h.Undecidable != nil || !h.Selected || !isUnfinished(n, h.ID) {
			continue
		}
		for _, id := range n.Records[h.ID].Subrefs {
			r, isOne := n.Records[id]
			switch {
			case r.Purpose != n.Reason && r.Purpose != "":
				isOne = false // it has ended in an earlier cycle
			case verb == request.Retry:
				isOne = isOne && !r.Finished() && r.Delayed.After(time.Now())
			case verb == request.Skip:
				isOne = isOne && !r.Success
			default:
				isOne = isOne && r.Finished()
			}
			if isOne && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// isFree reports whether the object is being deleted, and the operator does not hold it.
func isFree(n *inspection.Object) bool { return n.Body.Deleting() && !n.HasFinalizer }

// isUnfinished reports whether a handler was called, and has not ended.
func isUnfinished(n *inspection.Object, id string) bool {
	r, recorded := n.Records[id]
	return recorded && !r.Finished()
}

// Sent is the answer to a request.
type Sent struct {
	Message string `json:"message"`
}

// Text returns the answer for a person.
func (s Sent) Text(style Style) string {
	var b strings.Builder
	style.Paragraph(&b, "", s.Message)
	return b.String()
}
