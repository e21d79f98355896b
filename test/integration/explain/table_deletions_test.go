package explain

import (
	"context"
	"fmt"
	"time"

	"github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
)

const finalizer = "kopf.zalando.org/KopfFinalizerMarker"

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
			s.opened("", "other (create): waiting")
			asking(verb, value)(s, s.object())
		},
		stopped: stopped, running: running,
	}
}

// requested are situations with requests.
var requested = map[string]situation{
	"the object is suspended": withSuspension("forever",
		[]string{"create", "held", "fn (create): suspended"}, []string{"create", "held", "fn (create): suspended", "idle"}),
	"the object is suspended until a time": withSuspension(time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
		[]string{"create", "held", "fn (create): suspended"}, []string{"create", "held", "fn (create): suspended", "looks later"}),
	"a suspension is over":     withSuspension("2020-01-01T00:00:00Z", []string{"create", "fn (create): due"}, []string{"noop", "fn (create): done", "idle"}),
	"a suspension is mistyped": withSuspension("24h", []string{"create", "fn (create): due"}, []string{"noop", "fn (create): done", "idle"}),
	"a handler is skipped": askedWhileWaiting("skip", "1 fn",
		[]string{"create", "fn (create): skipped", "other (create): waiting", "requested"}, []string{"create", "fn (create): skipped", "other (create): waiting", "looks later"}),
	"a handler is called now": askedWhileWaiting("retry", "1 fn",
		[]string{"create", "fn (create): due", "other (create): waiting", "requested"}, []string{"create", "fn (create): waiting", "other (create): waiting", "looks later"}),
	"a request names an unknown handler": askedWhileWaiting("retry", "1 fm",
		[]string{"create", "fn (create): waiting", "other (create): waiting", "requested"}, []string{"create", "fn (create): waiting", "other (create): waiting", "looks later"}),
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
		stopped: []string{"create", "fn (delete): later"},
		running: []string{"noop", "fn (delete): later", "idle"},
	},
	"a deletion handler waits": {
		arrange: func(s *scene) {
			s.OnDelete(examples, retried, kopf.ID("fn"))
			s.deleted(`"` + finalizer + `"`)
		},
		stopped: []string{"delete", "fn (delete): due", "created (create): otherReason"},
		running: []string{"delete", "fn (delete): waiting", "created (create): otherReason", "looks later"},
	},
	"a failed deletion handler holds the object": {
		arrange: func(s *scene) {
			s.OnDelete(examples, fail, kopf.ID("fn"), kopf.HoldOnFailure())
			s.deleted(`"` + finalizer + `"`)
		},
		stopped: []string{"delete", "fn (delete): due", "created (create): otherReason"},
		running: []string{"delete", "fn (delete): failed", "created (create): otherReason", "idle"},
	},
	"another controller holds the object, too": {
		arrange: func(s *scene) {
			s.OnDelete(examples, retried, kopf.ID("fn"))
			s.deleted(`"` + finalizer + `","example.com/backup"`)
		},
		stopped: []string{"delete", "fn (delete): due", "created (create): otherReason"},
		running: []string{"delete", "fn (delete): waiting", "created (create): otherReason", "looks later"},
	},
	"another controller holds the object": {
		arrange: func(s *scene) {
			s.OnDelete(examples, create, kopf.ID("fn"))
			s.deleted(`"example.com/backup"`)
		},
		stopped: []string{"free", "fn (delete): undecidable", "created (create): otherReason"},
		running: []string{"free", "fn (delete): undecidable", "created (create): otherReason", "idle"},
	},
	"the deletion handler has ended, and another controller holds the object": {
		arrange: func(s *scene) {
			s.OnDelete(examples, create, kopf.ID("fn"))
			s.deleted(`"` + finalizer + `","example.com/backup","example.com/other"`)
		},
		stopped: []string{"delete", "fn (delete): due", "created (create): otherReason"},
		running: []string{"free", "fn (delete): undecidable", "created (create): otherReason", "idle"},
	},
	"Kubernetes deletes the dependents first": {
		arrange: func(s *scene) {
			s.OnDelete(examples, create, kopf.ID("fn"))
			s.deleted(`"foregroundDeletion"`)
		},
		stopped: []string{"free", "fn (delete): undecidable", "created (create): otherReason"},
		running: []string{"free", "fn (delete): undecidable", "created (create): otherReason", "idle"},
	},
	"no handler needs the finalizer": {
		arrange: func(s *scene) {
			s.OnCreate(examples, create, kopf.ID("fn"))
			s.releaseAfterwards()
			s.patch(s.create("one"), fmt.Sprintf(`{"metadata":{"finalizers":[%q]}}`, finalizer))
		},
		stopped: []string{"create", "fn (create): due"},
		running: []string{"noop", "fn (create): done", "idle"},
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
		stopped: []string{"delete", "held", "fn (delete): suspended"},
		running: []string{"delete", "held", "fn (delete): suspended", "idle"},
	},
}
