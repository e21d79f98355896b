package page

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/kopf-go/kopf/internal/request"
	"github.com/kopf-go/kopf/pkg/inspect"
)

// buttons are those of a handler.
func (p *Page) buttons(at target, id string, e *inspect.Explanation) (all []button) {
	if p.options.Writing == nil {
		return nil
	}
	for _, verb := range []request.Verb{request.Retry, request.Rerun, request.Skip} {
		if slices.Contains(e.Requestable(verb), id) {
			name := string(verb)
			all = append(all, button{strings.ToUpper(name[:1]) + name[1:], requestLink(at, name, id)})
		}
	}
	return all
}

// requestLink returns the address of the question whether a request is meant.
func requestLink(at target, verb, handler string) string {
	values := at.values()
	values.Set("verb", verb)
	if handler != "" {
		values.Set("handler", handler)
	}
	return "/request?" + values.Encode()
}

// duration is how long an object can be suspended.
type duration struct{ Value, Label string }

var durations = []duration{{"24h", "24 hours"}, {"1h", "1 hour"}, {"8h", "8 hours"}, {request.Forever, "until you end it"}}

// meant says what requests do.
var meant = map[string]string{
	"retry":     "The operator calls the handler now, instead of waiting for the next attempt. The attempt counts as any other.",
	"rerun":     "The operator calls the handler again. For an object to which nothing has happened, it is called with the reason resume.",
	"skip":      "The operator gives the handler up. It counts as succeeded until the next change.",
	"suspend":   "No handlers are called for the object, and its deletion is held. Changes are handled afterwards.",
	"unsuspend": "The operator calls the handlers of the object again, for all that has changed meanwhile.",
}

type confirmView struct {
	base

	At                     target
	Verb, Handler, Meaning string
	Durations              []duration
	CanAbandon             bool
	Back                   string
}

type messageView struct {
	base

	Text            string
	IsGood          bool
	Back, BackTitle string
}

// confirmRequest asks whether a request is meant.
func (p *Page) confirmRequest(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	at := targetOf(query)
	view := confirmView{base: p.base("Send a request?", "objects", ""), At: at, Verb: query.Get("verb"), Handler: query.Get("handler"), Back: at.link()}
	view.Meaning = meant[view.Verb]
	if view.Meaning == "" {
		http.Error(w, "There is no such request.", http.StatusBadRequest)
		return
	}
	view.CanAbandon = view.Verb == string(request.Skip)
	if view.Verb == string(request.Suspend) {
		view.Durations = durations
	}
	render(w, http.StatusOK, "confirm", view)
}

// sendRequest sends a request that was confirmed, as the command does.
func (p *Page) sendRequest(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, "The form cannot be read.", http.StatusBadRequest)
		return
	}
	at := targetOf(r.PostForm)
	view := messageView{base: p.base("The request was sent", "objects", ""), Back: at.link(), BackTitle: at.Name, IsGood: true}
	sent, ok := requestOf(r.PostForm, time.Now())
	if !ok {
		http.Error(w, "There is no such request.", http.StatusBadRequest)
		return
	}
	status := http.StatusOK
	cluster, _ := p.resources.current()
	text, err := cluster.Send(r.Context(), p.options.Writing, at.inspected(), sent)
	if err != nil {
		status = http.StatusConflict
		text = err.Error()
		view.Title = "The request was not sent"
		view.IsGood = false
	}
	view.Text = text
	render(w, status, "message", view)
}

// requestOf reads a form.
func requestOf(form url.Values, now time.Time) (r inspect.Request, ok bool) {
	r = inspect.Request{Verb: request.Verb(form.Get("verb")), Handler: form.Get("handler"), Abandon: form.Has(request.Abandon)}
	switch form.Get("verb") {
	case "retry", "rerun", "skip":
		return r, r.Handler != ""
	case "suspend":
		after, err := time.ParseDuration(form.Get("for"))
		switch {
		case form.Get("for") == request.Forever:
			return r, true
		case err != nil || after <= 0:
			return r, false
		}
		r.Until = now.Add(after).Truncate(time.Second)
		return r, true
	case "unsuspend":
		return inspect.Request{Verb: request.Suspend, Remove: true}, true
	default:
		return r, false
	}
}
