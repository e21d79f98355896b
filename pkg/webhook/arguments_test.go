package webhook_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/webhook"
)

// inspect sends a review to a handler that looks at its arguments.
func inspect(t *testing.T, request m, look func(ctx context.Context, a *handler.Call), adjust ...func(*webhook.Options)) {
	t.Helper()
	h := &handlers{t: t}
	called := false
	h.validate("a", func(ctx context.Context, a *handler.Call) error {
		called = true
		look(ctx, a)
		return nil
	}, handler.Param("param"), handler.Subresource("*"))
	if got := ask(t, h.serve(adjust...), "/a", request); !got.Allowed || !called {
		t.Errorf("called: %v, got %+v", called, got)
	}
}

func TestArgumentsOfAnUpdate(t *testing.T) {
	request := review(example(m{"size": 2}), m{
		"operation": "UPDATE", "oldObject": example(m{"size": 1}), "dryRun": true, "subResource": "status",
	})
	inspect(t, request, func(_ context.Context, a *handler.Call) {
		size, _ := a.Body().Spec().Int64("size")
		before, _ := a.Transition().Old.View().Int64("spec", "size")
		if size != 2 || before != 1 || !a.Transition().New.Exists() || a.Transition().Diff.String() != "change spec.size: 1 -> 2" {
			t.Errorf("got %d, %d, %s", size, before, a.Transition().Diff)
		}
		if a.Review.Operation != "UPDATE" || a.Review.Subresource != "status" || !a.Review.DryRun || a.Reason() != "update" || a.Param() != "param" {
			t.Errorf("got %s, %s, %v, %s, %v", a.Review.Operation, a.Review.Subresource, a.Review.DryRun, a.Reason(), a.Param())
		}
		if a.Name() != "one" || a.Namespace() != "ns" || a.Body().UID() != "u-1" || a.Body().Labels()["a"] != "b" || a.Resource().Plural != "kopfexamples" {
			t.Errorf("got %s/%s, %s, %v, %s", a.Namespace(), a.Name(), a.Body().UID(), a.Body().Labels(), a.Resource())
		}
		if user := a.Review.User; user.Username != "alice" || !slices.Equal(user.Groups, []string{"people"}) {
			t.Errorf("got %+v", user)
		}
		if a.Review.Peer != nil || a.Review.Headers().Get("Host") != "example.com" || a.Memo() != nil {
			t.Errorf("got %v, %v", a.Review.Peer, a.Review.Headers())
		}
	})
}

func TestArgumentsOfACreation(t *testing.T) {
	inspect(t, review(example(m{"size": 2})), func(_ context.Context, a *handler.Call) {
		if a.Transition().Old.Exists() || !a.Transition().New.Exists() || a.Review.Old != nil || a.Review.DryRun || len(a.Transition().Diff) != 1 || a.Reason() != "create" {
			t.Errorf("got %v, %v, %s", a.Transition().Old, a.Transition().New, a.Transition().Diff)
		}
	})
}

func TestBodyOfADeletionIsTheDeletedObject(t *testing.T) {
	request := review(nil, m{"operation": "DELETE", "oldObject": example(m{"size": 1})})
	inspect(t, request, func(_ context.Context, a *handler.Call) {
		if size, _ := a.Body().Spec().Int64("size"); size != 1 || a.Transition().New.Exists() || !a.Transition().Old.Exists() || a.Reason() != "delete" {
			t.Errorf("got %v, %v, %v", a.Body().Spec(), a.Transition().Old, a.Transition().New)
		}
	})
}

func TestHandlerOfAFieldSeesTheChangeOfTheField(t *testing.T) {
	h := &handlers{t: t}
	h.validate("a", func(_ context.Context, a *handler.Call) error {
		if !a.Transition().Old.Equals(1) || !a.Transition().New.Equals(2) || a.Transition().Diff.String() != "change: 1 -> 2" {
			t.Errorf("got %v, %v, %q", a.Transition().Old, a.Transition().New, a.Transition().Diff)
		}
		return nil
	}, handler.Field("spec.size"))
	ask(t, h.serve(), "/", review(example(m{"size": 2}), m{"operation": "UPDATE", "oldObject": example(m{"size": 1})}))
}

func TestWarningsKeepTheirOrder(t *testing.T) {
	h := &handlers{t: t}
	h.validate("a", func(_ context.Context, a *handler.Call) error { a.Review.Warn("one"); a.Review.Warn("two"); return nil })
	h.validate("b", func(_ context.Context, a *handler.Call) error {
		a.Review.Warn("three")
		return handler.Reject("no", 400)
	})
	if got := ask(t, h.serve(), "/", review(example(nil))); got.Allowed || !slices.Equal(got.Warnings, []string{"one", "two", "three"}) {
		t.Errorf("got %+v", got)
	}
}

func TestMemoIsThatOfTheObjectUnlessItIsBeingCreated(t *testing.T) {
	known := memo.NewValues(nil)
	memos := func(o *webhook.Options) {
		o.Memo = func(_ selector.Resource, name types.NamespacedName, uid types.UID) *memo.Values {
			if name.String() == "ns/one" && uid == "u-1" {
				return known
			}
			return memo.NewValues(nil)
		}
	}
	update := review(example(nil), m{"operation": "UPDATE", "oldObject": example(nil)})
	for name, test := range map[string]struct {
		request m
		kept    bool
	}{"an update": {update, true}, "a creation": {review(example(nil)), false}} {
		t.Run(name, func(t *testing.T) {
			inspect(t, test.request, func(_ context.Context, a *handler.Call) {
				if (a.Memo() == known) != test.kept {
					t.Errorf("kept: %v", a.Memo() == known)
				}
			}, memos)
		})
	}
}

type contextKey struct{}

func TestHandlerGetsTheContextOfTheOperator(t *testing.T) {
	with := func(o *webhook.Options) {
		o.Context = func(ctx context.Context, call handler.CallContext) context.Context {
			return context.WithValue(ctx, contextKey{}, call.Resource.Plural+" "+call.Body.Name())
		}
	}
	inspect(t, review(example(nil)), func(ctx context.Context, _ *handler.Call) {
		if ctx.Value(contextKey{}) != "kopfexamples one" {
			t.Errorf("got %v", ctx.Value(contextKey{}))
		}
	}, with)
}

func TestPeerIsKnownOnlyByAVerifiedCertificate(t *testing.T) {
	certificate := &x509.Certificate{Subject: pkix.Name{CommonName: "kube-apiserver"}}
	presented := []*x509.Certificate{certificate}
	tests := map[string]struct {
		state *tls.ConnectionState
		peer  *x509.Certificate
	}{
		"no TLS":         {nil, nil},
		"no certificate": {&tls.ConnectionState{}, nil},
		"presented":      {&tls.ConnectionState{PeerCertificates: presented}, nil},
		"verified":       {&tls.ConnectionState{PeerCertificates: presented, VerifiedChains: [][]*x509.Certificate{presented}}, certificate},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := &handlers{t: t}
			h.validate("a", func(_ context.Context, a *handler.Call) error {
				if a.Review.Peer != test.peer {
					t.Errorf("got %v", a.Review.Peer)
				}
				return nil
			})
			request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/a", strings.NewReader(encode(t, review(example(nil)))))
			request.TLS = test.state
			h.serve().ServeHTTP(httptest.NewRecorder(), request)
		})
	}
}
