package registry

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kopf-go/kopf/internal/function"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// Need is a use of a separate client by handlers.
type Need struct {
	Selector selector.Selector
	// Verbs are the verbs of RBAC. Those of a subresource have its name in front:
	// "status/patch".
	Verbs []string
	// DeclaredAt is the place of the declaration. Default: that of the call in the source.
	DeclaredAt string
}

// AddNeed adds what handlers do with a client, or a mistake in it.
func (r *Registry) AddNeed(n Need) {
	if r.reports != nil {
		r.Refuse("kopf.Needs")
		return
	}
	n.DeclaredAt = cmp.Or(n.DeclaredAt, function.Caller())
	err := n.Selector.Err()
	switch {
	case err != nil:
	case len(n.Verbs) == 0:
		err = fmt.Errorf("kopf.Needs for %s has no verbs", n.Selector)
	case slices.ContainsFunc(n.Verbs, isBadVerb):
		err = fmt.Errorf("kopf.Needs for %s has the verbs %q: name them in lower case, those of a subresource with its name in front (%q)", n.Selector, n.Verbs, "status/patch")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.problems = append(r.problems, fmt.Errorf("%s: %w", n.DeclaredAt, err))
		return
	}
	r.needs = append(r.needs, n)
}

func isBadVerb(verb string) bool {
	return verb == "" || strings.ContainsAny(verb, "* ,") || strings.ToLower(verb) != verb || strings.HasPrefix(verb, "/") || strings.HasSuffix(verb, "/")
}

// Needs returns what handlers do with a client.
func (r *Registry) Needs() []Need {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.needs)
}

// Divided returns the verbs of the resource, and those of its subresources by their names.
func (n Need) Divided() (plain []string, sub map[string][]string) {
	sub = map[string][]string{}
	for _, verb := range n.Verbs {
		if name, verb, ok := strings.Cut(verb, "/"); ok {
			sub[name] = append(sub[name], verb)
			continue
		}
		plain = append(plain, verb)
	}
	return plain, sub
}
