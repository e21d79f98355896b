package explain

import (
	"context"
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/internal/request"
	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
)

// A sub-handler can be requested as any handler, so the answers list it. The last one that is skipped
// lets its parent go on.
func TestSubhandlersCanBeRequested(t *testing.T) {
	s := newScene(t)
	calls := &operators.Calls{}
	s.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
		calls.Note("users %d", c.Retry())
		c.Subhandler("alice", noted(calls, "alice", later(9)))
		c.Subhandler("bob", noted(calls, "bob", succeed))
		return nil
	}, kopf.ID("users"))
	s.start()
	obj := s.create("one")
	s.shows("one", "users/alice (subhandler): waiting")

	s.refuses(obj, inspect.Request{Verb: request.Retry, Handler: "users/bob"})
	s.refuses(obj, inspect.Request{Verb: request.Skip, Handler: "users/bob"})
	s.refuses(obj, inspect.Request{Verb: request.Rerun, Handler: "users/alice"})
	s.sends(inspect.Request{Verb: request.Rerun, Handler: "users/bob"})
	s.Eventually(calls.All).Should(gomega.Equal([]string{"users 0", "alice create 0", "bob create 0", "users 1", "bob create 0"}))
	s.honored(obj, request.Rerun)
	s.sends(inspect.Request{Verb: request.Skip, Handler: "users/alice"})
	s.isHandled(obj)
	s.Expect(calls.Of("users")).To(gomega.Equal([]string{"users 0", "users 1", "users 2"}))
	s.Expect(calls.Of("alice")).To(gomega.HaveLen(1))
}
