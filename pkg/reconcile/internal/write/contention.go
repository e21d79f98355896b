package write

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/internal/managedfields"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/contention"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
)

// contended describes how a write affects the writes of others.
type contended struct {
	contention.Finding
	by *metav1.ManagedFieldsEntry // nil if unknown or irrelevant
}

// examineContention checks before a write whether it restores changes by others. Under
// contention, it also determines the other writer, because the write removes the traces.
func (s *Session) examineContention(ctx context.Context, merge map[string]any) contended {
	c := contended{Finding: s.writer.contention.Check(identity{s.target.Key, s.body.UID()}, s.body.Raw(), merge)}
	if !c.Begins {
		return c
	}
	managers, err := s.target.API.ManagedFields(ctx, s.target.Key.NamespacedName)
	if err != nil {
		s.report.Log.V(1).Info("The other writer of the object is unknown.", "problem", err.Error())
	}
	c.by = managedfields.LastWriter(managers, nil, c.Fields...)
	return c
}

// noteWritten records what was written, and reports a contention when it begins.
func (c contended) noteWritten(s *Session, merge map[string]any) {
	taken := func(object.Path, any) bool { return true }
	if isPrunable(merge) {
		raw := s.body.Raw() // as the server has stored it
		taken = func(path object.Path, wanted any) bool {
			value, _ := object.Lookup(raw, path)
			return object.Equal(value, wanted)
		}
	}
	delay := s.writer.contention.RecordWrite(identity{s.target.Key, s.body.UID()}, merge, taken, c.Finding)
	if c.Begins {
		c.report(s, delay)
	}
}

// report reports a contention in the log and as an event.
func (c contended) report(s *Session, delay time.Duration) {
	var names []string
	for _, field := range c.Fields {
		names = append(names, field.String())
	}
	fields := strings.Join(names, ", ")
	remedy := "Let only one of them write these fields."
	if slices.ContainsFunc(c.Fields, s.writer.isOwnRecord) {
		remedy = "These are this operator's own records: give one of the operators another prefix and finalizer, or connect them by a peering."
	}
	if c.by != nil && c.by.Manager == s.writer.Name {
		remedy += " The other client has the same field manager: give each operator its name in settings.Name, to tell them apart."
	}
	s.report.Log.Info("Another client keeps undoing the writes of this operator to the object. The object is handled less and less often until that stops. "+remedy,
		"fields", fields, "manager", s.writer.Name, "by", c.author(), "delay", delay.String())
	s.report.Event(s.body, report.Warning, "FieldContention", fmt.Sprintf("The writes of this operator (%q) are undone repeatedly by %s: %s. The object is handled less and less often until that stops. %s",
		s.writer.Name, c.author(), fields, remedy))
}

// author names the writer that undoes our writes, as far as the API server knows.
func (c contended) author() string {
	switch by := c.by; {
	case by == nil:
		return "a client that the object does not name"
	case by.Time == nil:
		return fmt.Sprintf("the field manager %q (%s)", by.Manager, by.Operation)
	default:
		return fmt.Sprintf("the field manager %q (%s at %s)", by.Manager, by.Operation, by.Time.UTC().Format(time.RFC3339))
	}
}

// isOwnRecord reports whether the operator stores its state in the field.
func (w *Writer) isOwnRecord(field object.Path) bool {
	switch {
	case len(field) < 2 || field[0] != "metadata":
		return false
	case len(field) == 3 && field[1] == "annotations":
		return w.Records.IsRecord(field[2])
	default:
		return field[1] == "finalizers"
	}
}
