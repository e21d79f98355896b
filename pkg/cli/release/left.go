package release

import (
	"fmt"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/storage"
)

// left says what stays on the objects and in the cluster.
func (r *Releaser) left(report *Report) (left []string) {
	has := func(is func(*handler.Declaration) bool) bool { return len(r.Handlers.Where(is)) > 0 }
	if report.Objects() > 0 {
		left = append(left, "The results of handlers in the status of the objects, and their events.")
		if has(func(d *handler.Declaration) bool { return d.Kind == handler.Conditions }) {
			left = append(left, "The conditions in the status of the objects.")
		}
		left = append(left, "Objects that handlers have created. Those with an owner are deleted together with it.")
		if has(func(d *handler.Declaration) bool { return d.Ensures != nil }) {
			left = append(left, "The children of handlers of Ensure, and their labels and annotations ("+storage.DefaultPrefix+"/ensured-by). Children in other namespaces than their parent have no owner: they stay when the parent is deleted.")
		}
	}
	if has(func(d *handler.Declaration) bool { return d.Kind.IsAdmission() }) && !(r.All && r.Settings.Admission.Managed != "") {
		left = append(left, "Webhook configurations that the operator or you have made: they can reject writes of the objects.")
	}
	left = append(left, r.places...)
	for _, name := range storage.Irremovable(r.Settings.Persistence.DiffBase, r.Settings.Persistence.Progress) {
		left = append(left, fmt.Sprintf("What the storage %s has stored, because it implements neither storage.TraceRemover nor storage.Eraser.", name))
	}
	return left
}
