package handler

import (
	"context"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/model/memo"
)

// ActivityFunc is a handler of what concerns the operator as a whole: its start,
// its end, its login, its health. What it returns depends on the kind: the result
// of a probe, the connection of a login, nothing otherwise.
//
// Specification: Startup; Shutdown; Health-checks; Authentication.
type ActivityFunc func(ctx context.Context, a *Activity) (any, error)

// Operator is what an activity is about. The engine fills it.
type Operator struct {
	Logger logr.Logger
	// Client is asked for only if a handler does; nil: there is none.
	Client func() client.Client
	Memo   *memo.Values
}

// Activity is the arguments of an ActivityFunc.
//
// Specification: Arguments.
type Activity struct {
	attemptInfo
	operator Operator
	param    any
}

var _ memo.Holder = (*Activity)(nil)

// NewActivity makes the arguments of one call.
func NewActivity(o Operator, param any, a Attempt) *Activity {
	return &Activity{attemptInfo{a}, o, param}
}

// Logger logs with the handler in every line.
func (a *Activity) Logger() logr.Logger { return a.operator.Logger }

// Param is the value of the option of the same name; nil without it.
func (a *Activity) Param() any { return a.param }

// Client talks to the cluster, in the operator's name. It is nil for logins, which
// are there to make it possible.
func (a *Activity) Client() client.Client {
	if a.operator.Client == nil {
		return nil
	}
	return a.operator.Client()
}

// Memo is what the operator keeps in memory: the values from which those of the
// objects are copied. A memo.Memo finds its value in it.
//
// Specification: In-memory containers, "Operator memos".
func (a *Activity) Memo() *memo.Values { return a.operator.Memo }
