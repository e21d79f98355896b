package explain

import (
	"context"
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/internal/request"
	"github.com/kopf-go/kopf/pkg/cli/inspect"
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
	s.says("one", "- users/alice (subhandler) waits until ")

	s.refuses(obj, inspect.Request{Verb: request.Retry, Handler: "users/bob"}, "retry users/bob is refused, and nothing was written: it has ended already. Handlers to retry now: users, users/alice. To call it again: ./my-operator rerun kopfexamples.kopf.dev/one -n "+s.namespace+" users/bob")
	s.refuses(obj, inspect.Request{Verb: request.Skip, Handler: "users/bob"}, "skip users/bob is refused, and nothing was written: it has succeeded already. Handlers to skip now: users, users/alice.")
	s.refuses(obj, inspect.Request{Verb: request.Rerun, Handler: "users/alice"}, "rerun users/alice is refused, and nothing was written: it has not ended, and waits for its next attempt. Handlers to rerun now: users/bob. To call it now: ./my-operator retry kopfexamples.kopf.dev/one -n "+s.namespace+" users/alice")
	s.sends(inspect.Request{Verb: request.Rerun, Handler: "users/bob"}, "Requested. A running operator will rerun the handler users/bob now.")
	s.Eventually(calls.All).Should(gomega.Equal([]string{"users 0", "alice create 0", "bob create 0", "users 1", "bob create 0"}))
	s.honored(obj, request.Rerun)
	s.sends(inspect.Request{Verb: request.Skip, Handler: "users/alice"}, "Requested. A running operator will skip the handler users/alice now.")
	s.isHandled(obj)
	s.Expect(calls.Of("users")).To(gomega.Equal([]string{"users 0", "users 1", "users 2"}))
	s.Expect(calls.Of("alice")).To(gomega.HaveLen(1))
}
