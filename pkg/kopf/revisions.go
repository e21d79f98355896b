package kopf

import (
	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/rollout"
)

// Revision names the revision of a handler. After the handler has changed, give it another one:
// objects that were handled under any other revision are handled again, with the reason
// ReasonUpdate and an empty diff. Revisions are compared by equality. The object stores the
// revision in an annotation, with the write that ends its handling.
//
// Objects that were handled before the handler had a revision are handled again, too; the log
// of the start has their number. To adopt them as they are, add Baseline. New objects are
// handled anyway. An empty name is a mistake in the declaration.
func Revision(name string) ChangeOption { return handler.Revision(name) }

// Baseline adopts the objects that were handled before the handler had a Revision: they count
// as handled under the current one. That costs one write for each of them, once.
func Baseline() ChangeOption { return handler.Baseline() }

// Rollout handles objects again in steps after a change of the Revision: rollout.First(5),
// rollout.ThenPercent(10). A step begins when all objects of the earlier ones have succeeded; the last
// step is repeated. When an object fails permanently, no other begins, and the log, the
// event RolloutStopped, and the metric kopf_rollout_objects say so. The rollout continues when
// no object has failed under this revision anymore, or with another revision. A restart
// continues it. New objects, and changes of objects, do not wait for it, and count.
//
// By default, all objects are handled at once. A rollout of a handler that is also declared
// with OnResume is a mistake in the declaration: all objects are handled at every start.
func Rollout(steps ...rollout.Step) ChangeOption { return handler.Rollout(steps...) }
