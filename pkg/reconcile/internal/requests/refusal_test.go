package requests_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/requests"
	"github.com/kopf-go/kopf/pkg/storage"
)

// declaredHandlers returns handlers of all kinds that a request can name by mistake.
func declaredHandlers(t *testing.T) (all registry.Handlers) {
	t.Helper()
	for _, id := range []string{"charge/spec.plan", "refund/spec.plan", "refund/spec.sum", "users", "users/spec.admins", "watch", "beat", "report", "byName", "remove"} {
		d := handlersOf(t, id)[0]
		switch id {
		case "watch":
			d.Kind = handler.OnDaemon
		case "beat":
			d.Kind = handler.OnTimer
		case "report":
			d.Kind = handler.OnEvent
		case "byName":
			d.Kind = handler.OnIndex
		case "remove":
			d.Kind = handler.OnDelete
		}
		all = append(all, d)
	}
	return all
}

func TestRefusalsSayWhatIsWrong(t *testing.T) {
	all := declaredHandlers(t)
	const elsewhere = "only handlers of changes can be retried, rerun, or skipped."
	for name, test := range map[string]struct {
		verb, id string
		reason   cause.Reason
		due      string
		want     string
	}{
		"dots instead of slashes":     {"retry", "charge.spec.plan", cause.NoOp, "", "no handler of this resource has the id charge.spec.plan; did you mean charge/spec.plan?"},
		"the field is missing":        {"rerun", "refund", cause.NoOp, "", "has the id refund; did you mean refund/spec.plan or refund/spec.sum?"},
		"a typing mistake":            {"rerun", "user", cause.NoOp, "", "did you mean users?"},
		"another field of a handler":  {"rerun", "users/spec.admin", cause.NoOp, "", "did you mean users/spec.admins?"},
		"nothing similar":             {"skip", "other", cause.Update, "users", "no handler of this resource has the id other."},
		"a registered sub-handler":    {"skip", "users/spec.admins/alise", cause.Update, "users/spec.admins", "did you mean users/spec.admins/alice?"},
		"an unregistered sub-handler": {"skip", "users/spec.admins/bob", cause.Update, "users/spec.admins", "it is a sub-handler that its parent users/spec.admins has not registered."},
		"a daemon":                    {"rerun", "watch", cause.NoOp, "", "it is a daemon, and " + elsewhere},
		"a timer":                     {"retry", "beat", cause.Update, "users", "it is a timer, and " + elsewhere},
		"an event handler":            {"skip", "report", cause.NoOp, "", "it is a handler of watch events, and " + elsewhere},
		"an index":                    {"skip", "byName", cause.NoOp, "", "it is an index, and " + elsewhere},
		"a sub-handler is rerun":      {"rerun", "users/alice", cause.NoOp, "", "it is a sub-handler: rerun its parent users, which registers it."},
		"a sub-handler is retried":    {"retry", "users/alice", cause.NoOp, "", "it is a sub-handler: users does not wait for a retry; to call it again, use request-rerun."},
		"nothing has happened":        {"retry", "users", cause.NoOp, "", "is refused: users does not wait for a retry; to call it again, use request-rerun."},
		"nothing can be skipped":      {"skip", "users", cause.NoOp, "", "is refused: nothing has happened to the object, so users is not called anyway; to call it again, use request-rerun."},
		"another change has happened": {"skip", "users", cause.Update, "charge/spec.plan", "users takes no part in the update, so there is nothing to skip; to call it again, use request-rerun."},
		"the object is being deleted": {"skip", "users", cause.Delete, "remove", "users takes no part in the deletion, so there is nothing to skip."},
		"it is too late for a rerun":  {"rerun", "users", cause.Delete, "remove", "the object is being deleted, and it is not a deletion handler."},
		"it is too early for a rerun": {"rerun", "remove", cause.NoOp, "", "it is a deletion handler, and the object is not being deleted."},
		"a filter does not match":     {"rerun", "users", cause.NoOp, "", "its labels or other filters do not match the object."},
	} {
		t.Run(name, func(t *testing.T) {
			var loaded []string
			progress := call.NewProgress(func(id string) *storage.Record {
				if loaded = append(loaded, id); id != "users/spec.admins" {
					return nil
				}
				return &storage.Record{Purpose: test.reason, Subrefs: []string{"users/spec.admins/alice"}}
			})
			due := all.Where(func(d *handler.Declaration) bool { return d.ID == test.due })
			read := requests.NewReader(prefix).Read(annotated(map[string]any{prefix + "/request-" + test.verb: "1 " + test.id}))
			read.Apply(progress, requests.Handlers{Selected: due, Declared: all}, test.reason)
			if len(read.Notes) != 1 || !read.Notes[0].Refused || !strings.HasSuffix(read.Notes[0].Message, test.want) {
				t.Errorf("got %+v", read.Notes)
			}
			for _, id := range loaded {
				if !strings.HasPrefix(id, test.due) {
					t.Errorf("the record of %s was loaded", id)
				}
			}
		})
	}
}

func TestMistypedRequestsAreNoted(t *testing.T) {
	reader := requests.NewReader(prefix)
	notes := reader.Mistyped(annotated(map[string]any{
		prefix + "/request-suspended": "forever", prefix + "/request-retri": "1 fn",
		prefix + "/request-retry":    "1 fn",                         // is honored
		prefix + "/requests-handled": "x",                            // belongs to the operator
		prefix + "/request-approval": "1 fn",                         // is similar to nothing
		prefix + "/request-reruns":   `{"purpose":"create"}`,         // is the record of a handler
		"example.com/request-retri":  "1 fn", "request-retri": "now", // belong to others
	}))
	var messages []string
	for _, note := range notes {
		if !note.Refused {
			t.Errorf("%+v is not refused", note)
		}
		messages = append(messages, note.Message)
	}
	want := []string{
		"There is no request with the annotation " + prefix + "/request-retri; did you mean request-retry?",
		"There is no request with the annotation " + prefix + "/request-suspended; did you mean request-suspend?",
	}
	if !slices.Equal(messages, want) {
		t.Errorf("got %q", messages)
	}
	if notes := (*requests.Reader)(nil).Mistyped(annotated(map[string]any{prefix + "/request-retri": "1 fn"})); notes != nil {
		t.Errorf("got %v although requests are disabled", notes)
	}
}
