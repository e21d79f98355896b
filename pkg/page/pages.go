package page

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/internal/request"
	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/internal/plural"
	"github.com/kopf-go/kopf/pkg/reconcile"
)

//go:embed templates
var templateFiles embed.FS

var templates = func() map[string]*template.Template {
	functions := template.FuncMap{"class": classOf, "meaning": func(s inspect.State) string { return meanings[s] }, "ago": ago, "stamp": stamp}
	layout := template.Must(template.New("layout.html").Funcs(functions).ParseFS(templateFiles, "templates/layout.html"))
	pages := map[string]*template.Template{}
	for _, name := range []string{"admitted", "overview", "objects", "object", "operator", "confirm", "message", "login"} {
		pages[name] = template.Must(template.Must(layout.Clone()).ParseFS(templateFiles, "templates/"+name+".html"))
	}
	return pages
}()

// render answers with a page. A page is complete, or an error.
func render(w http.ResponseWriter, status int, name string, view any) {
	var out bytes.Buffer
	if err := templates[name].Execute(&out, view); err != nil {
		http.Error(w, "The page cannot be rendered: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = out.WriteTo(w) // the browser may have left
}

// base is what all pages show.
type base struct {
	Title string
	Name  string // of the operator
	// CanLogOut is set in a cluster, where people log in.
	CanLogOut bool
	Current   string // the entry of the navigation
	// Changes is the address of the stream of changes that concern the page; empty if it does not change.
	Changes string
}

// meanings say what the states mean.
var meanings = map[inspect.State]string{
	inspect.Held:        "the deletion is held, because a deletion handler has failed for good",
	inspect.Failed:      "a handler has failed for good",
	inspect.Misfit:      "the object does not fit the Go type of a handler",
	inspect.Unknown:     "the object cannot be judged",
	inspect.Waiting:     "a handler waits for its next attempt, or for a rollout",
	inspect.Suspended:   "no handlers are called, as requested",
	inspect.Deleting:    "the object is being deleted, and does not wait for this operator",
	inspect.InProgress:  "the handling of a change has begun",
	inspect.Due:         "a running operator calls a handler now",
	inspect.Undecidable: "it depends on filters that cannot be evaluated without the operator",
	inspect.Handled:     "nothing has happened since it was handled",
	inspect.Background:  "only handlers that run in the background, or are called for events",
	inspect.LeftAlone:   "no handler of changes applies to it",
	inspect.Outside:     "in a namespace that the operator does not serve",
}

// classOf returns the class of the color of a state, of an object, a handler, or a child.
func classOf(state any) string {
	switch fmt.Sprint(state) {
	case "held", "failed", "misfit", "unknown", "foreign", "failing":
		return "bad"
	case "waiting", "suspended", "paused", "undecidable", "dropped", "outOfTurn", "deleting":
		return "warn"
	case "in progress", "due", "listing":
		return "busy"
	case "handled", "succeeded", "done", "ready", "background", "alive":
		return "good"
	default:
		return "calm"
	}
}

// ago says how far away a time is. It is not exact, because a page that does not change is not loaded again.
func ago(t time.Time) string {
	d := time.Since(t)
	if d < 0 {
		return "in " + roughly(-d)
	}
	return roughly(d) + " ago"
}

// roughly says how long something takes.
func roughly(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "less than 1 min"
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 2*day:
		return fmt.Sprintf("%d h", int(d.Hours()))
	default:
		return fmt.Sprintf("%d days", int(d/day))
	}
}

const day = 24 * time.Hour

// stamp returns a time for machines, and for people who need it exactly.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// base returns what all pages show.
func (p *Page) base(title, current, changes string) base {
	return base{Title: title, Name: p.options.Name, Current: current, Changes: changes, CanLogOut: p.options.Access != nil}
}

// listPatience is how long a page waits for the objects, so that few are not shown as none. A page without them loads again
// when they are there.
const listPatience = 400 * time.Millisecond

// awaitLists waits until the objects were listed, but not for long.
func (p *Page) awaitLists(r *http.Request) {
	p.audience.look()
	ctx, cancel := context.WithTimeout(r.Context(), listPatience)
	defer cancel()
	isEnded := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		case <-ctx.Done():
			return false
		}
	}
	if !isEnded(p.resources.tried) {
		return
	}
	_, tables := p.resources.current()
	for _, t := range tables {
		t.mu.RLock()
		tried := t.tried
		t.mu.RUnlock()
		if !isEnded(tried) {
			return
		}
	}
}

// stateCount is the number of objects in a state.
type stateCount struct {
	State   inspect.State
	Objects int
	Link    string
}

type resourceView struct {
	Name     string
	Objects  int
	IsListed bool
	States   []stateCount
	Link     string
}

type overviewView struct {
	base

	Wrong     []string // what keeps the operator from its work
	Attention []stateCount
	Resources []resourceView
	Operator  []string // what it does
	Notes     []string
}

func (p *Page) showOverview(w http.ResponseWriter, r *http.Request) {
	p.awaitLists(r)
	facts := p.readFacts(r.Context())
	_, tables := p.resources.current()
	view := overviewView{base: p.base("Overview", "overview", "/changes?facts"), Notes: facts.Start.Notes}
	view.Wrong = slices.Concat(facts.Start.Refusals, facts.Start.PossibleRefusals, facts.pauses())
	view.Wrong = append(view.Wrong, p.problems(tables)...)
	all := map[inspect.State]int{}
	for len(tables) > 0 {
		n := 1 // those of the same resource, in several namespaces
		for n < len(tables) && tables[n].of.Name == tables[0].of.Name {
			n++
		}
		one := overviewOf(tables[:n])
		for _, of := range one.States {
			all[of.State] += of.Objects
		}
		view.Resources = append(view.Resources, one)
		tables = tables[n:]
	}
	for _, state := range inspect.States() {
		isOne := classOf(state) == "bad" || classOf(state) == "warn"
		if isOne && all[state] > 0 {
			view.Attention = append(view.Attention, stateCount{state, all[state], linkTo(filter{State: string(state)}, 1)})
		}
	}
	slices.SortStableFunc(view.Resources, func(a, b resourceView) int { return cmp.Compare(a.worst(), b.worst()) })
	view.Operator = p.operatorLines(facts)
	render(w, http.StatusOK, "overview", view)
}

// overviewOf counts the objects of one resource, which can have several tables.
func overviewOf(tables []*table) resourceView {
	one := resourceView{Name: tables[0].of.Name, IsListed: true, Link: linkTo(filter{Resource: tables[0].of.Name}, 1)}
	counts := map[inspect.State]int{}
	for _, t := range tables {
		one.IsListed = one.IsListed && t.wasListed()
		for state, n := range t.count() {
			counts[state] += n
		}
	}
	for _, state := range inspect.States() {
		if counts[state] > 0 {
			one.Objects += counts[state]
			one.States = append(one.States, stateCount{state, counts[state], linkTo(filter{Resource: one.Name, State: string(state)}, 1)})
		}
	}
	return one
}

// problems says what is not known of the objects, and why.
func (p *Page) problems(tables []*table) (problems []string) {
	all := []string{p.resources.problem()}
	for _, t := range tables {
		all = append(all, t.problem())
	}
	for _, problem := range all {
		if problem != "" {
			problems = append(problems, problem)
		}
	}
	return problems
}

// worst returns the rank of the worst state of an object.
func (v resourceView) worst() int8 {
	if len(v.States) == 0 {
		return int8(len(ranks)) //nolint:gosec // there are few
	}
	return ranks[v.States[0].State]
}

// linkTo returns the address of a list of objects.
func linkTo(f filter, page int) string {
	query := url.Values{}
	for key, value := range map[string]string{"resource": f.Resource, "state": f.State, "namespace": f.Namespace, "name": f.Name} {
		if value != "" {
			query.Set(key, value)
		}
	}
	if page > 1 {
		query.Set("page", strconv.Itoa(page))
	}
	return strings.TrimSuffix("/objects?"+query.Encode(), "?")
}

// pageRows is the number of rows of a page.
const pageRows = 100

type objectRow struct {
	ID, Resource, Namespace, Name string
	State                         inspect.State
	Since                         time.Time
	Link                          string
}

type objectsView struct {
	base

	Filter     filter
	Resources  []string
	States     []inspect.State
	Problems   []string
	IsListed   bool
	Objects    string // their number
	Rows       []template.HTML
	Page       int
	Pages      int
	Back, Next string
}

func (p *Page) showObjects(w http.ResponseWriter, r *http.Request) {
	p.awaitLists(r)
	query := r.URL.Query()
	f := filter{Resource: query.Get("resource"), State: query.Get("state"), Namespace: strings.TrimSpace(query.Get("namespace")), Name: strings.TrimSpace(query.Get("name"))}
	view := objectsView{
		base:   p.base("Objects", "objects", "/changes?"+url.Values{"resource": {f.Resource}}.Encode()),
		Filter: f, States: inspect.States(), IsListed: true,
	}
	_, tables := p.resources.current()
	var wanted []*table
	for _, t := range tables {
		if !slices.Contains(view.Resources, t.of.Name) {
			view.Resources = append(view.Resources, t.of.Name)
		}
		if f.Resource == "" || f.Resource == t.of.Name {
			wanted = append(wanted, t)
			view.IsListed = view.IsListed && t.wasListed()
		}
	}
	view.Problems = p.problems(wanted)
	number, _ := strconv.Atoi(query.Get("page")) // what is no number is the first page
	rows, all, page := list(wanted, f, number)
	view.Objects = plural.Of(all, "object", "objects")
	view.Pages = max(1, (all+pageRows-1)/pageRows)
	view.Page = page
	if view.Page > 1 {
		view.Back = linkTo(f, view.Page-1)
	}
	if view.Page < view.Pages {
		view.Next = linkTo(f, view.Page+1)
	}
	for _, one := range rows {
		row, err := one.render(one.resource, time.Now())
		if err != nil {
			http.Error(w, "The page cannot be rendered: "+err.Error(), http.StatusInternalServerError)
			return
		}
		view.Rows = append(view.Rows, row)
	}
	render(w, http.StatusOK, "objects", view)
}

// renderedRow is a row of a list as a part of a page.
type renderedRow struct {
	html template.HTML
	at   time.Time
}

// rowAge is how old a rendered row can be: it says how long ago something was, in minutes.
const rowAge = 30 * time.Second

// render returns the row as a part of a page. Many people look at the same rows, most of which do not change, so it is kept.
func (e *entry) render(resource string, now time.Time) (template.HTML, error) {
	known := e.rendered.Load()
	if known != nil && now.Sub(known.at) < rowAge {
		return known.html, nil
	}
	at := target{resource, e.Namespace, e.Name}
	row := objectRow{ID: "row-" + string(e.uid), Resource: resource, Namespace: e.Namespace, Name: e.Name, State: e.state, Link: at.link()}
	if e.since != 0 {
		row.Since = time.Unix(e.since, 0)
	}
	var out bytes.Buffer
	if err := templates["objects"].ExecuteTemplate(&out, "row", row); err != nil {
		return "", err
	}
	known = &renderedRow{template.HTML(out.String()), now} //nolint:gosec // a template has escaped it
	e.rendered.Store(known)
	return known.html, nil
}

// target names an object in the address of a page.
type target struct{ Resource, Namespace, Name string }

// targetOf reads the object that a request is about.
func targetOf(values url.Values) target {
	return target{values.Get("resource"), values.Get("namespace"), values.Get("name")}
}

func (t target) values() url.Values {
	values := url.Values{"resource": {t.Resource}, "name": {t.Name}}
	if t.Namespace != "" {
		values.Set("namespace", t.Namespace)
	}
	return values
}

func (t target) link() string { return "/object?" + t.values().Encode() }

func (t target) key() types.NamespacedName {
	return types.NamespacedName{Namespace: t.Namespace, Name: t.Name}
}

func (t target) inspected() inspect.Target {
	return inspect.Target{Kind: t.Resource, Namespace: t.Namespace, Name: t.Name}
}

// arguments name the object on a command line.
func (t target) arguments() string {
	if t.Namespace == "" {
		return inspect.Quote(t.Resource + "/" + t.Name)
	}
	return inspect.Quote(t.Resource+"/"+t.Name, "-n", t.Namespace)
}

// section is a titled list of sentences.
type section struct {
	ID, Title string
	Lines     []string
}

// button leads to a request about the object, or about a handler of it.
type button struct{ Label, Link string }

type childrenView struct {
	Handler  string
	Children []inspect.Child
}

type objectView struct {
	base

	At       target
	Said     *inspect.Explanation
	Now      inspect.State
	Cards    []handlerCard
	Tree     []childrenView
	Sections []section
	Commands []string
	Buttons  []button
}

// handlerCard is a handler with what a person can do.
type handlerCard struct {
	inspect.Handler

	Dots    []struct{} // one for each attempt, but not too many
	Buttons []button
}

// maxDots is how many attempts are shown one by one.
const maxDots = 20

func (p *Page) showObject(w http.ResponseWriter, r *http.Request) {
	p.audience.look()
	at := targetOf(r.URL.Query())
	cluster, tables := p.resources.current()
	e, err := cluster.Explain(r.Context(), at.inspected())
	if err != nil {
		render(w, http.StatusNotFound, "message", messageView{base: p.base("This object cannot be shown", "objects", ""), Text: err.Error(), Back: "/objects", BackTitle: "All objects"})
		return
	}
	if p.options.Running != nil {
		if err := cluster.AddNow(r.Context(), at.inspected(), e, p.options.Running); err != nil {
			e.Notes = append(e.Notes, fmt.Sprintf("The running operator does not say what it is doing for the object: %v.", err))
		}
	}
	var now []string
	if e.Now != nil {
		now = e.Now.Findings
	}
	changes := at.values()
	changes.Set("facts", "")
	view := objectView{base: p.base(at.Name, "objects", "/changes?"+changes.Encode()), At: at, Said: e}
	for _, t := range tables {
		if t.of.Name == at.Resource {
			view.Now = cmp.Or(view.Now, t.stateOf(at))
		}
	}
	for _, h := range e.Handlers {
		view.Cards = append(view.Cards, handlerCard{h, make([]struct{}, min(h.Attempts, maxDots)), p.buttons(at, h.ID, e)})
	}
	for _, child := range e.Children {
		i := slices.IndexFunc(view.Tree, func(known childrenView) bool { return known.Handler == child.Handler })
		if i < 0 {
			i = len(view.Tree)
			view.Tree = append(view.Tree, childrenView{Handler: child.Handler})
		}
		view.Tree[i].Children = append(view.Tree[i].Children, child)
	}
	var peers []string
	for _, peer := range e.Peers {
		peers = append(peers, peer.Object+": "+peer.String())
	}
	for _, one := range []section{
		{"now", "What the operator is doing", now},
		{"conditions", "Conditions", e.Conditions},
		{"events", "Events", e.Events},
		{"requests", "Requests", e.Requests},
		{"deletion", "Deletion", e.Deletion},
		{"leader", "Who handles it", e.Leader},
		{"peering", "Peering", peers},
		{"notes", "Notes", e.Notes},
	} {
		if len(one.Lines) > 0 {
			view.Sections = append(view.Sections, one)
		}
	}
	view.Commands = p.commands(at, e)
	if p.options.Writing != nil {
		label := "Suspend"
		if e.IsSuspended() {
			label = "Unsuspend"
		}
		view.Buttons = []button{{label, requestLink(at, strings.ToLower(label), "")}}
	}
	render(w, http.StatusOK, "object", view)
}

// stateOf returns the state of an object in the table, or an empty one.
func (t *table) stateOf(at target) inspect.State {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if e := t.rows[at.key()]; e != nil {
		return e.state
	}
	return ""
}

// commands are those that a person may need, to copy.
func (p *Page) commands(at target, e *inspect.Explanation) []string {
	of := p.options.Cluster.CommandLine
	all := []string{of.Of("explain", at.arguments())}
	for _, verb := range []request.Verb{request.Retry, request.Rerun, request.Skip} {
		for _, id := range e.Requestable(verb) {
			command := of.Of(string(verb), at.arguments()+" "+inspect.Quote(id))
			if verb == request.Skip && e.Reason == "delete" {
				command += " --" + request.Abandon
			}
			all = append(all, command)
		}
	}
	suspend := "suspend"
	if e.IsSuspended() {
		suspend = "unsuspend"
	}
	return append(all, of.Of(suspend, at.arguments()), of.Kubectl("describe "+at.arguments()), of.Kubectl("get "+at.arguments()+" -o yaml"))
}

type operatorView struct {
	base

	Problems []string
	Sections []section
	Replicas []inspect.ShardReplica
	// Running and Limited are calls, Watches those of the operator.
	Running, Limited []callView
	Watches          []reconcile.ActiveWatch
	Rollouts         []rolloutView
	Missing          []string // rules
	Watched          []watchedView
	IsOwn            bool // the page has the permissions of the operator
}

type watchedView struct{ Resource, Namespace, State, Problem string }

func (p *Page) showOperator(w http.ResponseWriter, r *http.Request) {
	p.awaitLists(r)
	facts := p.readFacts(r.Context())
	cluster, tables := p.resources.current()
	view := operatorView{base: p.base("Operator", "operator", "/changes?facts"), IsOwn: cluster.IsRunning}
	view.Problems = slices.Concat(facts.Start.Refusals, facts.Start.PossibleRefusals)
	doing := p.operatorLines(facts)
	if p.options.Running == nil {
		doing = []string{askForMore}
	}
	if facts.Now != nil && facts.Now.Operator != nil {
		o := facts.Now.Operator
		view.Running = calls(o.Calls, tables)
		view.Limited = calls(o.Limited, tables)
		view.Watches = o.Watches
		view.Rollouts = rollouts(o.Rollouts)
		view.Missing = o.Missing
	}
	var peers, leases, shards []string
	if facts.Peers != nil {
		for _, object := range facts.Peers.Objects {
			switch {
			case object.Missing:
				peers = append(peers, object.Object+": the object does not exist.")
			case len(object.Peers) == 0:
				peers = append(peers, object.Object+": no operator has an entry.")
			}
			for _, peer := range object.Peers {
				peers = append(peers, object.Object+": "+peer.String()+".")
			}
		}
		peers = append(peers, facts.Peers.Notes...)
	}
	if facts.Shards != nil {
		leases = append([]string{facts.Shards.Lease + ": " + facts.Shards.State}, facts.Shards.Notes...)
		for _, shard := range facts.Shards.Shards {
			shards = append(shards, fmt.Sprintf("Shard %d: %s.", shard.Number, shard.Message))
		}
		view.Replicas = facts.Shards.Replicas
	}
	for _, err := range []error{facts.PeersErr, facts.ShardsErr} {
		if err != nil {
			view.Problems = append(view.Problems, "Something is unknown here: "+err.Error())
		}
	}
	view.Sections = []section{{"doing", "What it is doing", doing}, {"peers", "Peers", peers}, {"leases", "Leases", leases}, {"shards", "Shards", shards}, {"notes", "Notes", facts.Start.Notes}}
	view.Sections = slices.DeleteFunc(view.Sections, func(s section) bool { return len(s.Lines) == 0 })
	for _, t := range tables {
		one := watchedView{Resource: t.of.Name, Namespace: t.namespace, State: "is being listed", Problem: t.problem()}
		switch {
		case one.Problem != "":
			one.State = "not watched"
		case t.wasListed():
			one.State = "watched"
		}
		view.Watched = append(view.Watched, one)
	}
	if problem := p.resources.problem(); problem != "" {
		view.Problems = append(view.Problems, problem)
	}
	render(w, http.StatusOK, "operator", view)
}
