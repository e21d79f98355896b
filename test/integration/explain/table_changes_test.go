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

// opened runs an operator until the answer has the line, and stops it.
func (s *scene) opened(body, line string) *unstructured.Unstructured {
	s.t.Helper()
	former := s.start()
	obj := s.create("one")
	if body != "" {
		s.patch(obj.DeepCopy(), body)
	}
	s.says("one", line)
	former.Stop()
	return obj
}

const (
	isOpen  = isNew + " That has begun, and has not ended."
	isRerun = "It was handled and has not changed; handlers are called again on request. That has begun, and has not ended."
	toRetry = "→ to call it now: ./my-operator retry kopfexamples.kopf.dev/one -n default fn"
	failing = ", the last error: the disk is not ready"
	waiting = "- fn (create) waits until TIME (in SOME TIME) after 1 attempt"
	waits   = waiting + failing
	isLater = "- The operator looks at the object again at TIME (in SOME TIME), if nothing happens before."
)

// changes are situations without attempts.
var changes = map[string]situation{
	"a new object": {
		arrange: func(s *scene) {
			s.OnCreate(examples, create, kopf.ID("fn"))
			s.OnUpdate(examples, create, kopf.ID("changed"))
			s.create("one")
		},
		stopped: []string{isNew, "- fn (create) will run, if an operator is running", "- changed (update) has nothing to do: it is for later changes", "- The deletion waits for nothing."},
		running: []string{isHandled, "- fn (create) has nothing to do: the object was handled before", "- changed (update) has nothing to do: nothing has changed since the object was handled", nothingDue},
	},
	"a change": {
		arrange: func(s *scene) {
			s.OnUpdate(examples, create, kopf.ID("fn"))
			s.changed(`{"spec":{"size":1}}`, `{"spec":{"size":2}}`)
		},
		stopped: []string{"It has changed since it was handled last: an operator handles it as an update.", "- change spec.size: 1 -> 2", "- fn (update) will run, if an operator is running", "- created (create) has nothing to do: the object was handled before"},
		running: []string{isHandled, nothingDue, "- The object does not say whether the handlers have succeeded or failed for good, because it was handled without kopf.Conditions: see its events and the log. To call a handler again: ./my-operator rerun kopfexamples.kopf.dev/one -n default fn"},
	},
	"only the status has changed": {
		arrange: func(s *scene) {
			s.OnUpdate(examples, create, kopf.ID("fn"))
			s.changed(`{"spec":{"size":1}}`, `{}`)
			s.patchStatus(s.object(), `{"status":{"seen":true}}`)
		},
		stopped: []string{isHandled, "- fn (update) has nothing to do: nothing has changed since the object was handled"},
		running: []string{isHandled, nothingDue},
	},
	"a handler is called when an operator starts": {
		arrange: func(s *scene) {
			s.OnResume(examples, create, kopf.ID("fn"))
			s.changed(`{"spec":{"size":1}}`, `{}`)
		},
		stopped: []string{isHandled, "- fn (resume) will run when an operator starts"},
		running: []string{isHandled, "- fn (resume) will run when an operator starts", nothingDue},
	},
	"a watched object": {
		arrange: func(s *scene) {
			s.OnEvent(examples, func(context.Context, *kopf.WatchEvent) error { return nil }, kopf.ID("fn"))
			s.create("one")
		},
		stopped: []string{"It has no handlers of changes, so its changes are not tracked.", "- fn (event) is called for each watch event of the object"},
		running: []string{"It has no handlers of changes, so its changes are not tracked.", nothingDue},
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
		stopped: []string{"It was handled under another revision of a handler: an operator handles it again as an update without changes.", "- fn (create) will run again, if an operator is running"},
		during: func(s *scene) { // a change does not call it
			s.says("one", "has failed for good under its revision 2")
			s.settled(s.object())
		},
		running: []string{"- fn (create) has failed for good under its revision 2: it is called again on request, or under another revision", "→ correct the cause, and then: ./my-operator rerun kopfexamples.kopf.dev/one -n default fn", nothingDue},
	},
}

// attempts are situations in an open cycle.
var attempts = map[string]situation{
	"a handler waits for its next attempt": {
		arrange: func(s *scene) {
			s.OnCreate(examples, retried, kopf.ID("fn"))
			s.opened("", "waits until")
		},
		stopped: []string{isOpen, waits, toRetry},
		running: []string{isOpen, waits, toRetry, isLater},
	},
	"a handler that is called again on request waits": {
		arrange: func(s *scene) {
			s.OnCreate(examples, failingOnRequest, kopf.ID("fn"))
			former := s.start()
			obj := s.create("one")
			s.isHandled(obj)
			asking("rerun", "1 fn")(s, obj)
			s.says("one", "the last error: the disk is not ready")
			former.Stop()
		},
		stopped: []string{isRerun, waits, toRetry},
		running: []string{isRerun, waits, toRetry, isLater},
	},
	"a handler waits, of a limited number of attempts": {
		arrange: func(s *scene) {
			s.OnCreate(examples, retried, kopf.ID("fn"), kopf.Retries(5))
			s.opened("", "waits until")
		},
		stopped: []string{waiting + " (attempt 2 of 5)" + failing, toRetry},
		running: []string{waiting + " (attempt 2 of 5)" + failing, toRetry, isLater},
	},
	"a handler waits, and has a timeout": {
		arrange: func(s *scene) {
			s.OnCreate(examples, retried, kopf.ID("fn"), kopf.Timeout(24*time.Hour))
			s.opened("", "waits until")
		},
		stopped: []string{waiting + " (given up at TIME (in SOME TIME))" + failing, toRetry},
		running: []string{waiting + " (given up at TIME (in SOME TIME))" + failing, toRetry, isLater},
	},
	"a handler has failed, and another one waits": {
		arrange: func(s *scene) {
			s.OnCreate(examples, fail, kopf.ID("broken"))
			s.OnCreate(examples, create, kopf.ID("quick"))
			s.OnCreate(examples, retried, kopf.ID("fn"))
			s.opened("", "waits until")
		},
		stopped: []string{isOpen, "- broken (create) has failed for good at TIME (SOME TIME ago) after 1 attempt, the last error: no such size", "→ correct the cause, and then: ./my-operator rerun kopfexamples.kopf.dev/one -n default broken", "- quick (create) has succeeded at TIME (SOME TIME ago)", waits},
		running: []string{"- broken (create) has failed for good at TIME (SOME TIME ago) after 1 attempt, the last error: no such size", "- quick (create) has succeeded at TIME (SOME TIME ago)", waits, isLater},
	},
	"a handler has used up its attempts": {
		arrange: func(s *scene) {
			s.OnCreate(examples, func(context.Context, *kopf.Change) error {
				return kopf.Temporary(errors.New("not yet"), 10*time.Millisecond)
			}, kopf.ID("broken"), kopf.Retries(3))
			s.OnCreate(examples, retried, kopf.ID("fn"))
			s.opened("", "broken (create) has failed")
		},
		stopped: []string{"- broken (create) has failed for good at TIME (SOME TIME ago) after 3 attempts, the last error: handler broken has used up its 3 attempts: not yet", "→ correct the cause, and then: ./my-operator rerun kopfexamples.kopf.dev/one -n default broken"},
		running: []string{"- broken (create) has failed for good at TIME (SOME TIME ago) after 3 attempts, the last error: handler broken has used up its 3 attempts: not yet", isLater},
	},
	"a filter does not match anymore": {
		arrange: func(s *scene) {
			s.OnCreate(examples, retried, kopf.ID("fn"), kopf.Labels(matching(kopf.Equal("db"))))
			s.OnCreate(examples, retried, kopf.ID("any"))
			obj := s.opened(`{"metadata":{"labels":{"app":"db"}}}`, "fn (create) waits until")
			s.patch(obj, labeledWeb)
		},
		stopped: []string{`- fn (create) is not retried anymore after 1 attempt, because the label app is "web", and the handler wants "db", the last error: the disk is not ready`},
		running: []string{`- fn (create) is not retried anymore after 1 attempt, because the label app is "web", and the handler wants "db", the last error: the disk is not ready`, isLater},
	},
	"a sub-handler waits": {
		arrange: func(s *scene) {
			s.OnCreate(examples, func(ctx context.Context, c *kopf.Change) error {
				c.Subhandler("disk", retried)
				return c.Execute(ctx)
			}, kopf.ID("fn"))
			s.opened("", "fn/disk (subhandler) waits until")
		},
		stopped: []string{"- fn/disk (subhandler) waits until TIME (in SOME TIME) after 1 attempt, the last error: the disk is not ready"},
		running: []string{"- fn/disk (subhandler) waits until TIME (in SOME TIME) after 1 attempt, the last error: the disk is not ready", isLater},
	},
	"a handler waits for a slot": waitingForASlot(),
	"the cycle of a Kopf is open": {
		arrange: func(s *scene) {
			s.OnUpdate(examples, retried, kopf.ID("fn"))
			s.patch(s.create("one"), fmt.Sprintf(`{"spec":{"size":2},"metadata":{"annotations":{"kopf.zalando.org/last-handled-configuration":%q,"kopf.zalando.org/fn":%q}}}`,
				`{"spec":{"size":1}}`+"\n", fmt.Sprintf(`{"started":%q,"delayed":%q,"purpose":"update","retries":2,"success":false,"failure":false,"message":"not yet"}`, at(-time.Hour), at(time.Hour))))
		},
		stopped: []string{"It has changed since it was handled last: an operator handles it as an update. That has begun, and has not ended.", "- fn (update) waits until TIME (in SOME TIME) after 2 attempts, the last error: not yet", toRetry},
		running: []string{"- fn (update) waits until TIME (in SOME TIME) after 2 attempts, the last error: not yet", toRetry, isLater},
	},
	"a handler was renamed": {
		arrange: func(s *scene) {
			s.OnCreate(examples, retried, kopf.ID("former"))
			s.opened("", "waits until")
			s.Registry = kopf.NewRegistry()
			s.OnCreate(examples, retried, kopf.ID("fn"))
		},
		stopped: []string{isNew, "- fn (create) will run, if an operator is running", "- It has the progress of a handler that is not declared here: former. It was renamed or removed while it was handling the object, or another operator uses the same storage. If it was renamed, declare it with its former id (kopf.ID), so that it continues. If it was removed, its annotation can be removed, too."},
		running: []string{isOpen, waits, toRetry, isLater},
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
		stopped: []string{leftAlone},
		during: func(s *scene) {
			const toDB = `{"metadata":{"labels":{"app":"db"}}}`
			s.patch(s.create("other"), toDB)
			<-begun
			s.patch(s.object(), toDB)
		},
		running: []string{"- The handler fn waits for a slot, because of its kopf.Limit or of Settings.Execution.MaxCalls."},
	}
}

// at returns a time as Kopf writes it.
func at(d time.Duration) string {
	return time.Now().Add(d).UTC().Format("2006-01-02T15:04:05.000000+00:00")
}
