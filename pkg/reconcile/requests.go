package reconcile

import (
	"fmt"
	"slices"
	"time"

	"github.com/kopf-go/kopf/internal/request"
	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/heldobjects"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/requests"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/revision"
)

// RevisionsAnnotation is the name of the annotation with the revisions of handlers. Its prefix is
// that of requests.
const RevisionsAnnotation = revision.Name

// RequestNote is the outcome of a request.
type RequestNote = requests.Note

// reportRequests reports the outcomes of the requests, once.
func (t *target) reportRequests(c *cycle, body *object.Body) {
	if !c.InScope {
		return // another operator may honor them
	}
	notes := t.engine.requests.Mistyped(body)
	if c.Requests != nil {
		notes = append(notes, c.Requests.Notes...)
	}
	textOf := func(note RequestNote) string { return note.Value + note.Message }
	texts := make([]string, len(notes))
	for i, note := range notes {
		texts[i] = textOf(note)
	}
	fresh := t.object.reported.Replace("request ", texts...)
	for _, note := range notes {
		if !slices.Contains(fresh, textOf(note)) {
			continue
		}
		t.report.Log.Info(note.Message, "request", note.Value)
		if note.Refused {
			t.report.Event(body, report.Warning, "RequestRefused", note.Message)
		} else {
			t.report.Event(body, report.Normal, "RequestHonored", note.Message)
		}
	}
}

// suspended marks suspended objects.
var suspended = heldobjects.Finding{Reason: metrics.Suspended}

// suspension returns whether the object is suspended, and reports a request that cannot be
// read.
func (t *target) suspension(body *object.Body) requests.Suspension {
	s := t.engine.requests.Suspension(body, time.Now())
	if !s.Active {
		if _, wasSuspended := t.engine.objects.held.Since(t.key, suspended, ""); wasSuspended {
			t.report.Log.Info("The object is no longer suspended: its handlers are called again.")
		}
		t.engine.objects.held.Replace(t.key, suspended, nil)
	}
	var refused []string
	if s.Err != nil {
		refused = append(refused, s.Err.Error())
	}
	if len(t.object.reported.Replace("suspend ", refused...)) > 0 {
		message := fmt.Sprintf("The request to suspend the object is refused: %s.", s.Err)
		t.report.Log.Info(message)
		t.report.Event(body, report.Warning, "RequestRefused", message)
	}
	return s
}

// suspend stops all work on an object for which no handlers are called now, and says so once. It returns when that ends.
func (p *pass) suspend(s requests.Suspension) (next nextPass) {
	p.isOpen = never
	p.object.background.suspend()
	until := request.Forever
	if !s.Until.IsZero() {
		until = s.Until.UTC().Format(time.RFC3339)
		next = in(time.Until(s.Until))
	}
	_, known := p.engine.objects.held.Since(p.key, suspended, "")
	fresh := p.engine.objects.held.Replace(p.key, suspended, map[string]string{"": until})
	if len(fresh) > 0 && (known || p.object.seen || !p.object.initial.Load()) { // not for all at the start
		message := fmt.Sprintf("The object is suspended by a request: no handlers are called, and its deletion is held. End: %s.", until)
		p.report.Log.Info(message)
		p.report.Event(p.session.Body(), report.Normal, "ObjectSuspended", message)
	}
	p.engine.revisions.Forget(p.key) // a rollout does not wait for it
	return next
}

// kubectlRequest returns the command that requests something about a handler of the object.
func (t *target) kubectlRequest(verb request.Verb, id string, abandon bool) string {
	if abandon {
		id += " " + request.Abandon
	}
	return fmt.Sprintf(`kubectl annotate %s --overwrite %s="$(date +%%s) %s"`, t.kubectlName(), t.engine.requests.Annotation(verb), id)
}
