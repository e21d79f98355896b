package inspect

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-go/kopf/pkg/rbac"
)

// Roles are the permissions that an operator needs: a list of objects for kubectl apply.
type Roles struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Items      []runtime.Object `json:"items"`

	// Problems say what could not be derived.
	Problems []error `json:"-"`

	text string
}

// Roles derives the roles of the program from what the cluster serves now. The operator runs in
// the namespace, and as the account if that has a name.
func (c *Cluster) Roles(namespace string, account rbac.Account) *Roles {
	in := rbac.Input{Handlers: c.Handlers, Needs: c.Needs, Settings: c.Settings, Snapshot: c.served, Namespace: namespace}
	objects, problems := rbac.Objects(in, account)
	return &Roles{APIVersion: "v1", Kind: "List", Items: objects, Problems: problems, text: rbac.Text(in, account, time.Now())}
}

// Text returns the roles as manifests, with the reason of every rule and what could not be derived
// as comments.
func (r *Roles) Text(Style) string { return r.text }
