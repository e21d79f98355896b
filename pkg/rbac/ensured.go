package rbac

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// childVerbs are the verbs that the operator needs for children of Ensure.
var childVerbs = []string{"get", "list", "watch", "create", "patch", "delete"}

// addEnsured says for each handler of Ensure that its children are not known, unless kopf.Needs
// declares what children need for at least one kind. A handler can return further kinds: only the
// people who have declared one know whether they have declared all.
func (d *derivation) addEnsured() {
	if d.needsChildren() {
		return
	}
	verbs := `"` + strings.Join(childVerbs, `", "`) + `"`
	var said []string
	for _, h := range d.Handlers {
		if h.Ensures == nil {
			continue
		}
		// The last line is Go.
		problem := fmt.Sprintf("%s: the children of %s are not known before it is called. Declare what it needs for each of their kinds, "+
			"as here for Deployments, or let the operator learn it (--learn):\n"+`kopf.Needs(kopf.Resource("apps/v1", "deployments"), %s)`, h.DeclaredAt, handler.Describe(h), verbs)
		if !slices.Contains(said, problem) {
			said = append(said, problem)
			d.problems = append(d.problems, errors.New(problem))
		}
	}
}

// needsChildren reports whether kopf.Needs declares all verbs for children of a kind.
func (d *derivation) needsChildren() bool {
	declared := map[schema.GroupResource][]string{}
	for _, need := range d.Needs {
		plain, _ := need.Divided()
		found, err := need.Selector.Resolve(d.Snapshot.Resources)
		if err != nil { // it is declared for a kind that is not served yet, which addNeeds says
			found = []selector.Resource{{Plural: need.Selector.String()}}
		}
		for _, r := range found {
			of := schema.GroupResource{Group: r.Group, Resource: r.Plural}
			declared[of] = append(declared[of], plain...)
		}
	}
	for _, verbs := range declared {
		lacks := func(verb string) bool { return !slices.Contains(verbs, verb) }
		if !slices.ContainsFunc(childVerbs, lacks) {
			return true
		}
	}
	return false
}
