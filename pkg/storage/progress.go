package storage

import (
	"context"
	"errors"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// Progress keeps one record per object and handler for as long as a handling
// cycle is open: which handlers are done, and when the others are tried again.
//
// Users may implement it over an external database; Record marshals to JSON. An
// implementation is called concurrently for different objects, and never twice
// at a time for one.
//
// Store and Purge are called before the API write of the same pass. If that
// write or they themselves fail, the pass is repeated, and they may be called
// again with the same values: they must be idempotent. A storage that keeps its
// records on the object adds them to the patch; any other one leaves it alone.
//
// Specification: Configuration, "Handling progress".
type Progress interface {
	// Fetch returns the record of the handler, or nil if there is none. A stored
	// value that cannot be read is a *BrokenError: the engine tells about it, and
	// goes on as if there were none.
	Fetch(ctx context.Context, body *object.Body, handlerID string) (*Record, error)

	// Store keeps the record in place of the one that was stored before. It must
	// not keep the pointer.
	Store(ctx context.Context, body *object.Body, into Patch, handlerID string, record *Record) error

	// Purge forgets the record; it writes nothing if there is none.
	Purge(ctx context.Context, body *object.Body, into Patch, handlerID string) error

	// Clear leaves this storage's own traces out of an essence, so that keeping
	// progress is no change of the object. The essence itself is read only: Clear
	// returns it if it has no traces, and another one if it has.
	Clear(essence object.Essence) object.Essence
}

// Recorded lists those of the handlers that have a record on the object, and
// the sub-handlers that the records refer to if they have one too: what is to be
// purged when the cycle ends. A record that cannot be read counts; so does one
// of a handler whose function is not declared any more, if its id is given. The
// order is that of the ids, a handler before its sub-handlers.
func Recorded(ctx context.Context, from Progress, body *object.Body, handlerIDs []string) ([]string, error) {
	search := search{from: from, body: body, seen: map[string]bool{}}
	err := search.visit(ctx, handlerIDs)
	return search.found, err
}

type search struct {
	from  Progress
	body  *object.Body
	seen  map[string]bool // references are untrusted: they may go in circles
	found []string
}

func (s *search) visit(ctx context.Context, handlerIDs []string) error {
	pending := append([]string(nil), handlerIDs...)
	for len(pending) > 0 {
		id := pending[0]
		pending = pending[1:]
		if s.seen[id] {
			continue
		}
		s.seen[id] = true
		record, err := s.from.Fetch(ctx, s.body, id)
		if err != nil && !IsBroken(err) {
			return err
		}
		if record != nil || err != nil {
			s.found = append(s.found, id)
		}
		if record != nil {
			pending = append(append([]string(nil), record.Subrefs...), pending...)
		}
	}
	return nil
}

// IsBroken tells whether the error is about a stored value that cannot be read.
func IsBroken(err error) bool {
	var broken *BrokenError
	return errors.As(err, &broken)
}
