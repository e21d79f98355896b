package reconcile

import (
	"context"
	"errors"
	"testing"

	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

// unreadable is a storage of records that cannot be read.
type unreadable struct{ storage.Progress }

func (unreadable) Fetch(context.Context, *object.Body, string) (*storage.Record, error) {
	return nil, errBroken
}

// Whether an earlier process has failed to call a handler is in its record.
func TestRecordsOfChildHandlersThatCannotBeReadAreAnError(t *testing.T) {
	l := newLone(t, m{}, func(r *registry.Registry) { parental(r, nil) }, func(c *Config) {
		c.Settings.Persistence.Progress = unreadable{storage.AnnotationsProgress{}}
	})
	if _, err := l.pass(); !errors.Is(err, errBroken) || l.isAtRest() {
		t.Errorf("got %v, at rest: %t", err, l.isAtRest())
	}
}
