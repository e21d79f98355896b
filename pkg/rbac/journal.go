package rbac

import (
	"bytes"
	"cmp"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
)

// Journal records the permissions that requests have used, and reports those that the API server
// has refused. It keeps a limited number of entries for each verb, resource, and namespace, however
// many objects there are. It is safe for concurrent use.
type Journal struct {
	// Refused is called once for each kind of request that the API server refuses.
	Refused func(Permission)

	learns  atomic.Bool
	mu      sync.Mutex
	used    map[Permission]bool
	names   map[Permission]int // how many names are in used, by the permission without one
	refused map[Permission]bool
}

// Learn lets the journal note what was permitted, too.
func (j *Journal) Learn() { j.learns.Store(true) }

// maxRefused limits how many kinds of refused requests are reported.
const maxRefused = 1000

// Wrap returns a transport that is observed.
func (j *Journal) Wrap(next http.RoundTripper) http.RoundTripper { return observed{j, next} }

type observed struct {
	journal *Journal
	next    http.RoundTripper
}

// RoundTrip sends the request.
func (o observed) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := o.next.RoundTrip(request)
	switch {
	case err != nil:
	case response.StatusCode == http.StatusForbidden:
		o.journal.reportRefused(request, response)
	case o.journal.learns.Load():
		o.journal.recordUsed(request, response.StatusCode)
	}
	return response, err
}

// WrappedRoundTripper returns the transport below, for tools that look for it.
func (o observed) WrappedRoundTripper() http.RoundTripper { return o.next }

// recordUsed records a request that was permitted. Its answer can be another error.
func (j *Journal) recordUsed(request *http.Request, status int) {
	p, ok := Of(request)
	if !ok {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.record(p)
	switch {
	case p.Verb == "patch" && status == http.StatusCreated: // server-side apply
		p.Verb = "create"
		p.Name = "" // a role cannot restrict creations to a name
		j.record(p)
	case p.Verb == "watch" && request.URL.Query().Get("sendInitialEvents") == "true":
		// Other API servers do not send the initial objects this way. The client then lists them.
		p.Verb = "list"
		j.record(p)
	}
}

// maxNames limits how many names are recorded for each kind of request. It is enough for the objects
// that a role can name: peerings, leases, Secrets.
const maxNames = 10

// record records a permission, for all objects if there are many names.
func (j *Journal) record(p Permission) {
	if j.used == nil {
		j.used = map[Permission]bool{}
		j.names = map[Permission]int{}
	}
	if kind := p; p.Name != "" && !j.used[p] {
		kind.Name = ""
		if j.names[kind] >= maxNames {
			p.Name = ""
		}
		j.names[kind]++
	}
	j.used[p] = true
}

// reportRefused reports a request that was refused for lack of a permission. Quotas, policies, and
// namespaces that are being deleted have the same status.
func (j *Journal) reportRefused(request *http.Request, response *http.Response) {
	p, ok := Of(request)
	if !ok || j.Refused == nil {
		return
	}
	// Server-side apply also needs the verb create.
	p.Verb = refusedVerb(response)
	if p.Verb != "" && j.isNew(p) {
		j.Refused(p)
	}
}

// maxAnswer is the maximum size of an answer that is looked at, in bytes.
const maxAnswer = 64 << 10

// refusal has the words of all API servers for a lack of a permission.
var refusal = regexp.MustCompile(` cannot ([a-z]+) resource `)

// refusedVerb returns the verb that an answer of the authorization names, or nothing for other
// answers. It leaves the body to its reader.
func refusedVerb(response *http.Response) string {
	if response.Body == nil {
		return ""
	}
	start, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	rest := response.Body
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(start), rest), rest}
	if found := refusal.FindSubmatch(start); err == nil && found != nil {
		return string(found[1])
	}
	return ""
}

// isNew reports whether no such request was refused before.
func (j *Journal) isNew(p Permission) bool {
	p.Name = ""
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.refused[p] || len(j.refused) >= maxRefused {
		return false
	}
	if j.refused == nil {
		j.refused = map[Permission]bool{}
	}
	j.refused[p] = true
	return true
}

// Used returns what was permitted, in order.
func (j *Journal) Used() []Permission {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.SortedFunc(maps.Keys(j.used), func(a, b Permission) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(rank(a.Verb), rank(b.Verb)), cmp.Compare(a.Name, b.Name))
	})
}

// Missing returns the rule that a refused request needs.
func Missing(p Permission) Rule {
	return Rule{Group: p.Group, Resources: []string{p.Resource}, Verbs: []string{p.Verb}, Reason: "It was missing."}
}
