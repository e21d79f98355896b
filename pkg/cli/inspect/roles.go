package inspect

import (
	"time"

	"github.com/kopf-go/kopf/pkg/rbac"
)

// Roles are the permissions that an operator needs.
type Roles struct {
	Roles []rbac.Role `json:"roles"`
	// Problems say what could not be derived.
	Problems []string `json:"problems,omitempty"`

	text string
}

// Roles derives the roles of the program from what the cluster serves now. The operator runs in
// the namespace, and as the account if that has a name.
func (c *Cluster) Roles(namespace string, account rbac.Account) *Roles {
	in := rbac.Input{Handlers: c.Handlers, Needs: c.Needs, Settings: c.Settings, Snapshot: c.served, Namespace: namespace}
	derived, problems := rbac.Derive(in)
	answer := &Roles{Roles: derived, text: rbac.Text(in, account, time.Now())}
	for _, problem := range problems {
		answer.Problems = append(answer.Problems, problem.Error())
	}
	return answer
}

// Text returns the roles as manifests, with the reason of every rule.
func (r *Roles) Text(Style) string { return r.text }
