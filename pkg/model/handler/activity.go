package handler

import (
	"context"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/model/memo"
)

// ActivityFunc handles an activity of the operator itself: startup, cleanup, login, or a
// probe. Its result depends on the kind: the result of a probe, the connection of a
// login, and otherwise nothing.
//
// Specification: Startup; Shutdown; Health-checks; Authentication.
type ActivityFunc func(ctx context.Context, a *Activity) (any, error)

// Operator provides the data of an activity. The engine fills it.
type Operator struct {
	Logger logr.Logger
	// Client is called only if a handler uses the client. Nil means that there is none.
	Client func() client.Client
	Memo   *memo.Values
}

// Activity contains the arguments of an ActivityFunc.
//
// Specification: Arguments.
type Activity struct {
	attemptInfo
	operator Operator
	param    any
}

var _ memo.Holder = (*Activity)(nil)

// NewActivity returns the arguments of one call.
func NewActivity(o Operator, param any, a Attempt) *Activity {
	return &Activity{attemptInfo{a}, o, param}
}

// Logger returns a logger that adds the handler to every line.
func (a *Activity) Logger() logr.Logger { return a.operator.Logger }

// Param returns the value of the option Param, or nil without it.
func (a *Activity) Param() any { return a.param }

// Client returns a client of the cluster with the operator's permissions. It returns nil
// for logins, which establish the connection.
func (a *Activity) Client() client.Client {
	if a.operator.Client == nil {
		return nil
	}
	return a.operator.Client()
}

// Memo returns the operator's values in memory, from which the values of the objects are
// copied. Use a memo.Memo to get its value.
//
// Specification: In-memory containers, "Operator memos".
func (a *Activity) Memo() *memo.Values { return a.operator.Memo }
