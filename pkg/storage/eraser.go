package storage

import (
	"context"
	"errors"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// Eraser is a DiffBase or a Progress that keeps its data elsewhere than on the objects, and hears when an object is
// gone: annotations go with their object, but the rows of a database stay.
//
// The operator calls Erase when the watch shows that the object does not exist anymore, after the last call of the
// other methods for the object. The command release calls it for objects that it has released. A failure is logged
// and retried, also after a pause, as long as the operator runs. When it stops, it makes one more attempt. Erase holds
// back nothing else, however long it takes: not even an object that is created again with the same name, which has
// another uid.
//
// An object that disappears while no operator is running, or in the moment of a crash, is not announced. A storage that
// must not keep data about such objects compares the uids that it has with those in the cluster from time to time.
//
// Kopf calls the same method of its storages, at most once.
type Eraser interface {
	// Erase removes everything that the storage keeps for the uid of the object. It does nothing if there is nothing:
	// it can be called again, and for objects for which nothing was stored. The body is the last version that the
	// operator has seen.
	Erase(ctx context.Context, body *object.Body) error
}

var (
	_ Eraser = MultiDiffBase{}
	_ Eraser = MultiProgress{}
)

// Erase lets all storages erase that implement Eraser, also if others of them fail.
func (m MultiDiffBase) Erase(ctx context.Context, body *object.Body) error {
	return EraseAll(ctx, body, Erasers(m))
}

// Erase lets all storages erase that implement Eraser, also if others of them fail.
func (m MultiProgress) Erase(ctx context.Context, body *object.Body) error {
	return EraseAll(ctx, body, Erasers(m))
}

// EraseAll lets the storages erase, also if others of them fail.
func EraseAll(ctx context.Context, body *object.Body, storages []Eraser) error {
	var errs []error
	for _, each := range storages {
		errs = append(errs, each.Erase(ctx, body))
	}
	return errors.Join(errs...)
}

// Erasers returns the storages that implement Eraser, also those within a MultiDiffBase or a MultiProgress.
func Erasers(storages ...any) []Eraser {
	var erasers []Eraser
	for _, each := range single(storages) {
		if eraser, ok := each.(Eraser); ok {
			erasers = append(erasers, eraser)
		}
	}
	return erasers
}

// single returns the storages, with those within a MultiDiffBase or a MultiProgress in place of it.
func single(storages []any) []any {
	var all []any
	for _, each := range storages {
		switch each := each.(type) {
		case MultiDiffBase:
			for _, inner := range each {
				all = append(all, single([]any{inner})...)
			}
		case MultiProgress:
			for _, inner := range each {
				all = append(all, single([]any{inner})...)
			}
		default:
			all = append(all, each)
		}
	}
	return all
}
