package explain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// retried is a handler that waits for an hour after each attempt.
func retried(context.Context, *kopf.Change) error {
	return kopf.Temporary(errors.New("the disk is not ready"), time.Hour)
}

func fail(context.Context, *kopf.Change) error { return kopf.Permanent(errors.New("no such size")) }

// failingOnRequest waits for an hour when it is called for an object that was handled.
func failingOnRequest(ctx context.Context, c *kopf.Change) error {
	if c.Reason() == kopf.ReasonResume {
		return retried(ctx, c)
	}
	return nil
}

// opened runs an operator until the answer has the fact, and stops it.
func (s *scene) opened(body, fact string) *unstructured.Unstructured {
	s.t.Helper()
	former := s.start()
	obj := s.create("one")
	if body != "" {
		s.patch(obj.DeepCopy(), body)
	}
	s.shows("one", fact)
	former.Stop()
	return obj
}

// changes are situations without attempts.
var changes = map[string]situation{
	"a new object": {
		arrange: func(s *scene) {
			s.OnCreate(examples, create, kopf.ID("fn"))
			s.OnUpdate(examples, create, kopf.ID("changed"))
			s.create("one")
		},
		stopped: []string{"create", "fn (create): due", "changed (update): later"},
		running: []string{"noop", "fn (create): done", "changed (update): done", "idle"},
	},
	"a change": {
		arrange: func(s *scene) {
			s.OnUpdate(examples, create, kopf.ID("fn"))
			s.changed(`{"spec":{"size":1}}`, `{"spec":{"size":2}}`)
		},
		stopped: []string{"update", "change spec.size: 1 -> 2", "fn (update): due", "created (create): done"},
		running: []string{"noop", "fn (update): done", "created (create): done", "idle"},
	},
	"only the status has changed": {
		arrange: func(s *scene) {
			s.OnUpdate(examples, create, kopf.ID("fn"))
			s.changed(`{"spec":{"size":1}}`, `{}`)
			s.patchStatus(s.object(), `{"status":{"seen":true}}`)
		},
		stopped: []string{"noop", "fn (update): done", "created (create): done"},
		running: []string{"noop", "fn (update): done", "created (create): done", "idle"},
	},
	"a handler is called when an operator starts": {
		arrange: func(s *scene) {
			s.OnResume(examples, create, kopf.ID("fn"))
			s.changed(`{"spec":{"size":1}}`, `{}`)
		},
		stopped: []string{"noop", "fn (resume): later", "created (create): done"},
		running: []string{"noop", "fn (resume): later", "created (create): done", "idle"},
	},
	"a watched object": {
		arrange: func(s *scene) {
			s.OnEvent(examples, func(context.Context, *kopf.WatchEvent) error { return nil }, kopf.ID("fn"))
			s.create("one")
		},
		stopped: []string{"no cause", "fn (event): ready"},
		running: []string{"no cause", "fn (event): ready", "idle"},
	},
	"another revision of a handler": {
		arrange: func(s *scene) {
			s.OnCreate(examples, create, kopf.ID("fn"), kopf.Revision("1"))
			obj := s.create("one")
			former := s.start()
			s.isHandled(obj)
			former.Stop()
			s.Registry = kopf.NewRegistry()
			s.OnCreate(examples, fail, kopf.ID("fn"), kopf.Revision("2"))
		},
		stopped: []string{"update", "fn (create): due"},
		during: func(s *scene) { // a change does not call it
			s.shows("one", "fn (create): failed")
			s.settled(s.object())
		},
		running: []string{"noop", "fn (create): failed", "idle"},
	},
}

// attempts are situations in an open cycle.
var attempts = map[string]situation{
	"a handler waits for its next attempt": {
		arrange: func(s *scene) {
			s.OnCreate(examples, retried, kopf.ID("fn"))
			s.opened("", "fn (create): waiting")
		},
		stopped: []string{"create", "fn (create): waiting"},
		running: []string{"create", "fn (create): waiting", "looks later"},
	},
	"a handler that is called again on request waits": {
		arrange: func(s *scene) {
			s.OnCreate(examples, failingOnRequest, kopf.ID("fn"))
			former := s.start()
			obj := s.create("one")
			s.isHandled(obj)
			asking("rerun", "1 fn")(s, obj)
			s.shows("one", "fn (create): waiting")
			former.Stop()
		},
		stopped: []string{"resume", "fn (create): waiting"},
		running: []string{"resume", "fn (create): waiting", "looks later"},
	},
	"a handler waits, of a limited number of attempts": {
		arrange: func(s *scene) {
			s.OnCreate(examples, retried, kopf.ID("fn"), kopf.Retries(5))
			s.opened("", "fn (create): waiting")
		},
		stopped: []string{"create", "fn (create): waiting"},
		running: []string{"create", "fn (create): waiting", "looks later"},
	},
	"a handler waits, and has a timeout": {
		arrange: func(s *scene) {
			s.OnCreate(examples, retried, kopf.ID("fn"), kopf.Timeout(24*time.Hour))
			s.opened("", "fn (create): waiting")
		},
		stopped: []string{"create", "fn (create): waiting"},
		running: []string{"create", "fn (create): waiting", "looks later"},
	},
	"a handler has failed, and another one waits": {
		arrange: func(s *scene) {
			s.OnCreate(examples, fail, kopf.ID("broken"))
			s.OnCreate(examples, create, kopf.ID("quick"))
			s.OnCreate(examples, retried, kopf.ID("fn"))
			s.opened("", "fn (create): waiting")
		},
		stopped: []string{"create", "broken (create): failed", "quick (create): succeeded", "fn (create): waiting"},
		running: []string{"create", "broken (create): failed", "quick (create): succeeded", "fn (create): waiting", "looks later"},
	},
	"a handler has used up its attempts": {
		arrange: func(s *scene) {
			s.OnCreate(examples, func(context.Context, *kopf.Change) error {
				return kopf.Temporary(errors.New("not yet"), 10*time.Millisecond)
			}, kopf.ID("broken"), kopf.Retries(3))
			s.OnCreate(examples, retried, kopf.ID("fn"))
			s.opened("", "broken (create): failed")
		},
		stopped: []string{"create", "broken (create): failed", "fn (create): waiting"},
		running: []string{"create", "broken (create): failed", "fn (create): waiting", "looks later"},
	},
	"a filter does not match anymore": {
		arrange: func(s *scene) {
			s.OnCreate(examples, retried, kopf.ID("fn"), kopf.Labels(matching(kopf.Equal("db"))))
			s.OnCreate(examples, retried, kopf.ID("any"))
			obj := s.opened(`{"metadata":{"labels":{"app":"db"}}}`, "fn (create): waiting")
			s.patch(obj, labeledWeb)
		},
		stopped: []string{"create", "fn (create): dropped", "any (create): waiting"},
		running: []string{"create", "fn (create): dropped", "any (create): waiting", "looks later"},
	},
	"a sub-handler waits": {
		arrange: func(s *scene) {
			s.OnCreate(examples, func(ctx context.Context, c *kopf.Change) error {
				c.Subhandler("disk", retried)
				return c.Execute(ctx)
			}, kopf.ID("fn"))
			s.opened("", "fn/disk (subhandler): waiting")
		},
		stopped: []string{"create", "fn (create): waiting", "fn/disk (subhandler): waiting"},
		running: []string{"create", "fn (create): waiting", "fn/disk (subhandler): waiting", "looks later"},
	},
	"a handler waits for a slot": waitingForASlot(),
	"the cycle of a Kopf is open": {
		arrange: func(s *scene) {
			s.OnUpdate(examples, retried, kopf.ID("fn"))
			s.patch(s.create("one"), fmt.Sprintf(`{"spec":{"size":2},"metadata":{"annotations":{"kopf.zalando.org/last-handled-configuration":%q,"kopf.zalando.org/fn":%q}}}`,
				`{"spec":{"size":1}}`+"\n", fmt.Sprintf(`{"started":%q,"delayed":%q,"purpose":"update","retries":2,"success":false,"failure":false,"message":"not yet"}`, at(-time.Hour), at(time.Hour))))
		},
		stopped: []string{"update", "change spec.size: 1 -> 2", "fn (update): waiting"},
		running: []string{"update", "change spec.size: 1 -> 2", "fn (update): waiting", "looks later"},
	},
	"a handler was renamed": {
		arrange: func(s *scene) {
			s.OnCreate(examples, retried, kopf.ID("former"))
			s.opened("", "former (create): waiting")
			s.Registry = kopf.NewRegistry()
			s.OnCreate(examples, retried, kopf.ID("fn"))
		},
		stopped: []string{"create", "fn (create): due"},
		running: []string{"create", "fn (create): waiting", "looks later"},
	},
}

// waitingForASlot is about a handler that waits because another object has the only slot.
func waitingForASlot() situation {
	begun := make(chan struct{}, 1)
	return situation{
		arrange: func(s *scene) {
			s.settings.Execution.MaxCalls = 1
			s.OnCreate(examples, func(ctx context.Context, c *kopf.Change) error {
				if c.Name() == "other" {
					begun <- struct{}{}
				}
				<-ctx.Done()
				return ctx.Err()
			}, kopf.ID("fn"), kopf.Labels(matching(kopf.Equal("db"))))
			s.create("one")
		},
		stopped: []string{"create", "fn (create): mismatched"},
		during: func(s *scene) {
			const toDB = `{"metadata":{"labels":{"app":"db"}}}`
			s.patch(s.create("other"), toDB)
			<-begun
			s.patch(s.object(), toDB)
		},
		running: []string{"create", "fn (create): due", "fn waits for a slot", "idle"},
	}
}

// at returns a time as Kopf writes it.
func at(d time.Duration) string {
	return time.Now().Add(d).UTC().Format("2006-01-02T15:04:05.000000+00:00")
}
