package kopf

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// Change has the arguments of a handler of changes: the object, what has happened to it, the
// attempt, and what the handler writes. Use it only while the handler runs, and only in the
// handler's goroutine; the Patch can be shared.
//
// The handler can be called again after a crash, so it must be idempotent. Its context is
// canceled when the handler's timeout is over or the operator cannot wait any longer. It carries the logger, the
// client, and the object for log.FromContext, ClientFrom, and the functions of package hierarchy.
//
// Specification: Arguments, "Resource-changing kwargs", "Retrying and timing".
type Change struct {
	reading
	writing
	retrying
	answering
}

func changeOf(c *handler.Call) *Change {
	return &Change{reading{c}, writing{c}, retrying{c}, answering{c}}
}

// OldEssence returns the essence of the entire object that was last handled, also for
// handlers of fields. It returns nil if there is none or if it is unknown. Do not modify
// it.
func (c *Change) OldEssence() object.Essence { return c.reading.call.OldEssence() }

// DecodeOld decodes the object as it was handled last, its essence and its identity without a
// status, into a pointer to a Go type. It returns false if the object was never handled, or if only
// hashes of the old values are stored; Old tells these apart.
//
// If the former state does not fit the type, it returns a MisfitError. If the handler returns
// that error, the call does not count as an attempt, as if the object did not fit. Otherwise
// the handler can use Old, which needs no type.
func (c *Change) DecodeOld(into any) (bool, error) {
	essence := c.OldEssence()
	if essence == nil {
		return false, nil
	}
	old := maps.Clone(essence)
	old["apiVersion"] = c.Body().APIVersion()
	old["kind"] = c.Body().Kind()
	metadata, _ := essence["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["name"] = c.Name()
	metadata["uid"] = string(c.UID())
	if c.Namespace() != "" {
		metadata["namespace"] = c.Namespace()
	}
	old["metadata"] = metadata
	return true, former(handler.DecodeObject(old, into))
}

// former marks an error of decoding as one of the former state.
func former(err error) error {
	if misfit := handler.AsMisfit(err); misfit != nil {
		misfit.Former = true
	}
	return err
}

// Misfit returns why the object does not fit the Go type of the handler, or nil if it fits.
// It is not nil only for deletion handlers with the option CallUntyped, which are
// called nevertheless, without the Go object.
func (c *Change) Misfit() error {
	if misfit := c.reading.call.Misfit(); misfit != nil {
		return misfit
	}
	return nil
}

// Failures returns the last errors of the handlers of AfterFailure that have failed for good, by their
// ids as in the option. It is nil for handlers without that option. The messages are cut to 2,048 bytes.
func (c *Change) Failures() map[string]string {
	call := c.reading.call
	if len(call.Failures) == 0 {
		return nil
	}
	failures := map[string]string{}
	for id, message := range call.Failures {
		failures[call.Declaration.DeclaredID(id)] = message
	}
	return failures
}

// Subhandler registers a part of this handler's work as a separate handler with the id
// "<handler>/<id>" and its own progress, retries, and result. It runs after this handler
// has returned without an error, or in Execute. The handler is called again until all
// its sub-handlers are done, and must register the same ones each time.
//
// By default, a sub-handler sees the old and new values and the diff of this handler,
// relative to its field if it has one. A sub-handler with a Field sees those of that
// field, whose path begins at the object's root. Its field is a filter: it need not have
// changed.
//
// Specification: Handlers, "Sub-handlers"; Idempotence.
func (c *Change) Subhandler(id string, fn func(context.Context, *Change) error, options ...ChangeOption) {
	c.reading.call.Register(handler.NewSubhandler(id, functionOf(fn, changeOf), options...))
}

// Execute runs the registered sub-handlers immediately instead of after the return. It
// returns nil when all of them are done. The handler must return any other error
// unchanged.
func (c *Change) Execute(ctx context.Context) error { return c.reading.call.Execute(ctx) }

// WatchEvent has the arguments of an event handler: the object, and the type of the event. Use it
// only while the handler runs. The errors of the handler are logged and ignored; only its patch
// and its result are written.
//
// Specification: Handlers, "Event-watching handlers".
type WatchEvent struct {
	reading
	writing
	answering
}

func eventOf(c *handler.Call) *WatchEvent { return &WatchEvent{reading{c}, writing{c}, answering{c}} }

// Type returns ADDED, MODIFIED, or DELETED, or "" for an object from the initial list.
func (e *WatchEvent) Type() watch.EventType { return e.reading.call.Event }
