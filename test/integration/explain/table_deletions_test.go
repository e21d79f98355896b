package explain

import (
	"context"
	"fmt"
	"time"

	"github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
)

const (
	unsuspend      = "./my-operator unsuspend kopfexamples.kopf.dev/one -n default"
	isSuspended    = "no handlers are called for it, and its deletion is held. To end that: " + unsuspend
	waitsForThat   = "- fn (create) waits, because the object is suspended"
	finalizer      = "kopf.zalando.org/KopfFinalizerMarker"
	isBeingHeld    = "- The object is being deleted since TIME (SOME TIME ago). It has the finalizer " + finalizer + " of this operator, which removes it when its deletion handlers and daemons have ended."
	isNotCalled    = "- fn (delete) is not called anymore, because the object is being deleted without the finalizer of this operator. The operator removes it when the handler has ended, so the handler was called, unless the object did not have the finalizer, or another client has removed it; which of these is not decidable here"
	waitsForBackup = `- It waits for the finalizer example.com/backup of another controller, which must remove it: see its log. If that controller does not exist anymore, clean up for it, and then: kubectl patch kopfexamples.kopf.dev/one -n default --type=merge -p '{"metadata":{"finalizers":[]}}'`
	isBeingDeleted = "It is being deleted, and has the finalizer of this operator: an operator calls its deletion handlers."
)

// withSuspension is about a new object with a request to suspend it.
func withSuspension(value string, stopped, running []string) situation {
	return situation{
		arrange: func(s *scene) {
			s.OnCreate(examples, create, kopf.ID("fn"))
			asking("suspend", value)(s, s.create("one"))
		},
		stopped: stopped, running: running,
	}
}

// askedWhileWaiting is about an object whose handlers fn and other wait, with a request.
func askedWhileWaiting(verb, value string, stopped, running []string) situation {
	return situation{
		arrange: func(s *scene) {
			s.OnCreate(examples, retried, kopf.ID("fn"))
			s.OnCreate(examples, retried, kopf.ID("other"))
			s.opened("", "other (create) waits until")
			asking(verb, value)(s, s.object())
		},
		stopped: stopped, running: running,
	}
}

// requested are situations with requests.
var requested = map[string]situation{
	"the object is suspended": withSuspension("forever",
		[]string{"Nothing happens now, because", "- The object is suspended until the request is removed: " + isSuspended, waitsForThat, "→ " + unsuspend},
		[]string{"- The object is suspended until the request is removed: " + isSuspended, waitsForThat, nothingDue}),
	"the object is suspended until a time": withSuspension(time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
		[]string{"- The object is suspended until TIME (in SOME TIME): " + isSuspended, waitsForThat},
		[]string{"- The object is suspended until TIME (in SOME TIME): " + isSuspended, waitsForThat, isLater}),
	"a suspension is over": withSuspension("2020-01-01T00:00:00Z", []string{isNew, "- fn (create) will run, if an operator is running"}, []string{isHandled, nothingDue}),
	"a suspension is mistyped": withSuspension("24h",
		[]string{"- fn (create) will run, if an operator is running", `- The request to suspend the object has no effect: the value "24h" is neither a time, such as "TIME", nor "forever".`},
		[]string{isHandled, `- The request to suspend the object has no effect: the value "24h" is neither a time, such as "TIME", nor "forever".`}),
	"a handler is skipped": askedWhileWaiting("skip", "1 fn",
		[]string{"- The handler fn will be skipped by a running operator as requested.", "- fn (create) will be skipped as requested, when an operator honors the request", isOpen},
		[]string{"- fn (create) was skipped at TIME (SOME TIME ago): skipped by a request", isLater}),
	"a handler is called now": askedWhileWaiting("retry", "1 fn",
		[]string{"- The handler fn will be called now by a running operator as requested.", "- fn (create) will run as requested, after 1 attempt, if an operator is running, the last error: the disk is not ready"},
		[]string{"- fn (create) waits until TIME (in SOME TIME) after 2 attempts, the last error: the disk is not ready", isLater}),
	"a request names an unknown handler": askedWhileWaiting("retry", "1 fm",
		[]string{"- The request to retry the handler fm will be refused by a running operator: no handler of this resource has the id fm; did you mean fn?", waits},
		[]string{waits, isLater}),
}

// releaseAfterwards removes the finalizers of the object after the test.
func (s *scene) releaseAfterwards() {
	s.t.Cleanup(func() {
		err := cluster.Client().Patch(context.Background(), s.object(), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
		s.Expect(client.IgnoreNotFound(err)).To(gomega.Succeed())
	})
}

// deleted deletes an object with finalizers, which an earlier operator has handled.
func (s *scene) deleted(finalizers string) {
	s.t.Helper()
	s.OnCreate(examples, create, kopf.ID("created"))
	obj := s.create("one")
	former := s.start()
	s.isHandled(obj)
	former.Stop()
	s.releaseAfterwards()
	s.patch(obj.DeepCopy(), fmt.Sprintf(`{"metadata":{"finalizers":[%s]}}`, finalizers))
	deleting(s, obj)
}

// deletions are situations of objects that are deleted, or will be.
var deletions = map[string]situation{
	"no finalizer yet": {
		arrange: func(s *scene) {
			s.OnDelete(examples, create, kopf.ID("fn"))
			s.create("one")
			s.releaseAfterwards()
		},
		stopped: []string{"- fn (delete) will run when the object is deleted", "- The object does not have the finalizer " + finalizer + " yet: a running operator adds it before it calls handlers."},
		running: []string{"- fn (delete) will run when the object is deleted", "- The object has the finalizer " + finalizer + ": its deletion will wait for this operator.", nothingDue},
	},
	"a deletion handler waits": {
		arrange: func(s *scene) {
			s.OnDelete(examples, retried, kopf.ID("fn"))
			s.deleted(`"` + finalizer + `"`)
		},
		stopped: []string{isBeingDeleted, "- fn (delete) will run, if an operator is running", "- created (create) is not called: the object is being deleted", isBeingHeld},
		running: []string{isBeingDeleted + " That has begun, and has not ended.", "- fn (delete) waits until TIME (in SOME TIME) after 1 attempt, the last error: the disk is not ready", toRetry, isBeingHeld, isLater},
	},
	"a failed deletion handler holds the object": {
		arrange: func(s *scene) {
			s.OnDelete(examples, fail, kopf.ID("fn"), kopf.HoldOnFailure())
			s.deleted(`"` + finalizer + `"`)
		},
		stopped: []string{"- fn (delete) will run, if an operator is running", isBeingHeld},
		running: []string{"- fn (delete) has failed for good at TIME (SOME TIME ago) after 1 attempt, the last error: no such size", "- The deletion is held, because the handler fn has failed for good. Clean up, and then: ./my-operator skip kopfexamples.kopf.dev/one -n default fn --abandon", nothingDue},
	},
	"another controller holds the object, too": {
		arrange: func(s *scene) {
			s.OnDelete(examples, retried, kopf.ID("fn"))
			s.deleted(`"` + finalizer + `","example.com/backup"`)
		},
		stopped: []string{isBeingHeld, "- The deletion also waits for the finalizer example.com/backup of another controller."},
		running: []string{isBeingHeld, "- The deletion also waits for the finalizer example.com/backup of another controller.", isLater},
	},
	"another controller holds the object": {
		arrange: func(s *scene) {
			s.OnDelete(examples, create, kopf.ID("fn"))
			s.deleted(`"example.com/backup"`)
		},
		stopped: []string{
			"It is being deleted, and does not have the finalizer of this operator, or not anymore: no handlers are called for the deletion now.", isNotCalled, "→ see the events and the log: kubectl describe kopfexamples.kopf.dev/one -n default", "- created (create) is not called: the object is being deleted",
			"- The object is being deleted since TIME (SOME TIME ago). This operator does not hold it.", waitsForBackup,
		},
		running: []string{isNotCalled, waitsForBackup, nothingDue},
	},
	"the deletion handler has ended, and another controller holds the object": {
		arrange: func(s *scene) {
			s.OnDelete(examples, create, kopf.ID("fn"))
			s.deleted(`"` + finalizer + `","example.com/backup","example.com/other"`)
		},
		stopped: []string{isBeingDeleted, "- fn (delete) will run, if an operator is running", isBeingHeld},
		running: []string{
			isNotCalled, "- The object is being deleted since TIME (SOME TIME ago). This operator does not hold it.",
			`- It waits for the finalizer example.com/backup of another controller, which must remove it: see its log. If that controller does not exist anymore, clean up for it, and then: kubectl patch kopfexamples.kopf.dev/one -n default --type=merge -p '{"metadata":{"finalizers":["example.com/other"]}}'`,
			`- It waits for the finalizer example.com/other of another controller, which must remove it: see its log. If that controller does not exist anymore, clean up for it, and then: kubectl patch kopfexamples.kopf.dev/one -n default --type=merge -p '{"metadata":{"finalizers":["example.com/backup"]}}'`, nothingDue,
		},
	},
	"Kubernetes deletes the dependents first": {
		arrange: func(s *scene) {
			s.OnDelete(examples, create, kopf.ID("fn"))
			s.deleted(`"foregroundDeletion"`)
		},
		stopped: []string{isNotCalled, "- It waits for the finalizer foregroundDeletion of Kubernetes, which deletes the objects before it that have owner references to it."},
		running: []string{isNotCalled, "- It waits for the finalizer foregroundDeletion of Kubernetes, which deletes the objects before it that have owner references to it.", nothingDue},
	},
	"no handler needs the finalizer": {
		arrange: func(s *scene) {
			s.OnCreate(examples, create, kopf.ID("fn"))
			s.releaseAfterwards()
			s.patch(s.create("one"), fmt.Sprintf(`{"metadata":{"finalizers":[%q]}}`, finalizer))
		},
		stopped: []string{"- The object has the finalizer " + finalizer + ", and no handler needs it: a running operator removes it."},
		running: []string{"- The deletion waits for nothing.", isHandled, nothingDue},
	},
	"a suspension holds the deletion": {
		arrange: func(s *scene) {
			s.OnDelete(examples, create, kopf.ID("fn"))
			obj := s.create("one")
			former := s.start()
			s.isHandled(obj)
			former.Stop()
			s.releaseAfterwards()
			both(asking("suspend", "forever"), deleting)(s, obj)
		},
		stopped: []string{"- The object is suspended until the request is removed: " + isSuspended, "- fn (delete) waits, because the object is suspended", isBeingHeld},
		running: []string{"- The object is suspended until the request is removed: " + isSuspended, "- fn (delete) waits, because the object is suspended", nothingDue},
	},
}
