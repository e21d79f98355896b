package handler

import (
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf/cause"
	"github.com/kopf-go/kopf/pkg/kopf/diff"
	"github.com/kopf-go/kopf/pkg/kopf/object"
	"github.com/kopf-go/kopf/pkg/kopf/patch"
	"github.com/kopf-go/kopf/pkg/kopf/selector"
)

// Arguments is what filters see, whatever the kind of handler: the object and
// the circumstances. Where a kind has no such thing (an event handler has no
// old state), the value is the zero one.
//
// Specification: Arguments.
type Arguments interface {
	Body() *object.Body
	Spec() object.View
	Status() object.View
	Meta() object.View
	Name() string
	Namespace() string
	UID() types.UID
	Labels() map[string]string
	Annotations() map[string]string
	Resource() selector.Resource
	Param() any
	Logger() logr.Logger
	Reason() cause.Reason
	Old() object.Value
	New() object.Value
	Diff() diff.Diff
}

// Subject is the object at hand and the means to work on it: the part of the
// arguments that all kinds of handlers share. The engine fills it.
type Subject struct {
	Body     *object.Body
	Patch    *patch.Patch
	Resource selector.Resource
	Logger   logr.Logger
	Client   client.Client
}

// common answers for the subject; every kind of arguments embeds it.
type common struct {
	subject Subject
	param   any
}

// Body is the object as it is now.
func (c *common) Body() *object.Body { return c.subject.Body }

// Spec is the part of the object that its users write.
func (c *common) Spec() object.View { return c.subject.Body.Spec() }

// Status is the part of the object that its operators write.
func (c *common) Status() object.View { return c.subject.Body.Status() }

// Meta is the object's metadata.
func (c *common) Meta() object.View { return c.subject.Body.Meta() }

// Name is the object's name.
func (c *common) Name() string { return c.subject.Body.Name() }

// Namespace is the object's namespace; empty for a cluster-scoped object.
func (c *common) Namespace() string { return c.subject.Body.Namespace() }

// UID is the object's uid.
func (c *common) UID() types.UID { return c.subject.Body.UID() }

// Labels are the object's labels, never nil.
func (c *common) Labels() map[string]string { return c.subject.Body.Labels() }

// Annotations are the object's annotations, never nil.
func (c *common) Annotations() map[string]string { return c.subject.Body.Annotations() }

// Resource is the actual resource of the object, as the cluster serves it.
func (c *common) Resource() selector.Resource { return c.subject.Resource }

// Param is the value of the option of the same name; nil without it.
func (c *common) Param() any { return c.param }

// Logger logs with the object and the handler in every line.
func (c *common) Logger() logr.Logger { return c.subject.Logger }

// Patch collects changes of the object. They are sent together with the
// operator's own bookkeeping after the handler has returned.
func (c *common) Patch() *patch.Patch { return c.subject.Patch }

// Client talks to the cluster, in the operator's name. Unless the operator was
// added to a manager that caches, it reads live.
func (c *common) Client() client.Client { return c.subject.Client }

// Attempt is how far a handler is with its work.
type Attempt struct {
	Retry   int       // how often it was tried before: 0 on the first attempt
	Started time.Time // the first attempt
	Now     time.Time // this attempt
}

// Transition is what has happened to the object, or to the handler's field.
type Transition struct {
	Reason cause.Reason
	Old    object.Value
	New    object.Value
	Diff   diff.Diff
	// OldEssence is that of the whole object, for handlers of fields too.
	OldEssence object.Essence
}
