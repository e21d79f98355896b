package handler_test

import (
	"context"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

type m = map[string]any

var kex = selector.New("kopf.dev", "v1", "kopfexamples")

func doNothing(context.Context, *handler.Change) error { return nil }

func watchNothing(context.Context, *handler.Event) error { return nil }

func change(fn handler.ChangeFunc) handler.Function { return handler.Function{Change: fn} }

// declared returns a valid declaration.
func declared(t testing.TB, d *handler.Declaration, err error) *handler.Declaration {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// refused expects an error of a declaration.
func refused(t *testing.T, d *handler.Declaration, err error, want ...string) {
	t.Helper()
	if d != nil || err == nil {
		t.Fatalf("got %+v, %v, want an error with %q", d, err, want)
	}
	for _, part := range want {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("got %q, want %q in it", err, part)
		}
	}
}

// occasion returns an update of an object from one state to another.
func occasion(reason cause.Reason, from, to object.Essence) *handler.Cause {
	o := &handler.Cause{Reason: reason, Old: from, New: to, CallContext: handler.CallContext{Body: object.NewBody(to)}}
	var before, after any = from, to
	if from == nil {
		before = nil
	}
	o.Diff = diff.Compute(before, after, diff.Full)
	return o
}
