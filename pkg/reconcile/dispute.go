package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/internal/managedfields"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/contention"
)

// claimed is an object that the operator has written to; another one of the same
// name begins anew.
type claimed struct {
	object.Key
	uid types.UID
}

// respite is for how long the object is left alone because somebody else undoes
// what is written to it. An object that is to go does not wait for that.
func (p *pass) respite() time.Duration {
	snapshot := p.cached(p.key.NamespacedName)
	if snapshot == nil {
		return 0
	}
	pause := p.disputes.Delay(claimed{p.key, snapshot.GetUID()})
	if pause > 0 && snapshot.GetDeletionTimestamp() != nil {
		return 0
	}
	return pause
}

// dispute is what a write has to do with the writes of others.
type dispute struct {
	contention.Finding
	culprit *metav1.ManagedFieldsEntry // nil: it is not known, or not of interest
}

// examine looks, before a write, whether it restores what somebody else has changed;
// and who that was, when it becomes too much: the write wipes out the traces.
func (p *pass) examine(ctx context.Context, merge map[string]any) dispute {
	d := dispute{Finding: p.disputes.Check(claimed{p.key, p.body.UID()}, p.body.Raw(), merge)}
	if !d.Begins {
		return d
	}
	managers, err := p.api.ManagedFields(ctx, p.key.NamespacedName)
	if err != nil {
		p.log.V(1).Info("It is not known who writes to the object.", "problem", err.Error())
	}
	d.culprit = managedfields.LastWriter(managers, nil, d.Fields...)
	return d
}

// claim notes what is written, and tells of a dispute when it begins.
func (p *pass) claim(merge map[string]any, d dispute) {
	taken := func(object.Path, any) bool { return true }
	if prunable(merge) {
		raw := p.body.Raw() // as the server has made it
		taken = func(path object.Path, wanted any) bool {
			value, _ := object.Lookup(raw, path)
			return object.Equal(value, wanted)
		}
	}
	delay := p.disputes.RecordWrite(claimed{p.key, p.body.UID()}, merge, taken, d.Finding)
	if d.Begins {
		p.declareDispute(d, delay)
	}
}

// declareDispute tells of it in the log and as an event, once.
func (p *pass) declareDispute(d dispute, delay time.Duration) {
	var names []string
	for _, field := range d.Fields {
		names = append(names, field.String())
	}
	fields, remedy := strings.Join(names, ", "), "Let only one of them write these fields."
	if slices.ContainsFunc(d.Fields, p.isRecord) {
		remedy = "These are this operator's own records: give one of the operators another prefix and finalizer, or let them know of each other by a peering."
	}
	p.log.Info("Somebody else undoes what this operator writes to the object, again and again. It is handled less and less often, until that stops. "+remedy,
		"fields", fields, "by", d.who(), "delay", delay.String())
	p.post(p.body, warning, "FieldContention", fmt.Sprintf("What this operator writes is undone again and again, by %s: %s. The object is handled less and less often, until that stops. %s",
		d.who(), fields, remedy))
}

// who is whoever undoes our writes, as far as the API server knows.
func (d dispute) who() string {
	c := d.culprit
	switch {
	case c == nil:
		return "somebody whom the object does not name"
	case c.Time == nil:
		return fmt.Sprintf("the field manager %q (%s)", c.Manager, c.Operation)
	}
	return fmt.Sprintf("the field manager %q (%s at %s)", c.Manager, c.Operation, c.Time.UTC().Format(time.RFC3339))
}

// isRecord tells whether a field is one where the operator keeps its state.
func (p *pass) isRecord(field object.Path) bool {
	if len(field) < 2 || field[0] != "metadata" {
		return false
	}
	if len(field) == 3 && field[1] == "annotations" {
		essence := object.Essence{"metadata": map[string]any{"annotations": map[string]any{field[2]: "a"}}}
		return !object.Equal(essence, p.Settings.Persistence.Progress.Clear(essence))
	}
	return field[1] == "finalizers"
}
