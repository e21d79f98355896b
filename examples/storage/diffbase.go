package main

import (
	"context"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

// The keys of the two values; objectKey and the keys of the handlers' records are others.
const (
	baseKey  = "base"
	cycleKey = "cycle"
)

// fileDiffBase keeps two values of every object: the last handled essence, and the states
// of an unfinished cycle. A change made meanwhile, also while no operator is running, then
// leads to the next cycle.
//
// It does not use the patches, so the objects themselves hold no state.
type fileDiffBase struct{ file }

var (
	_ storage.DiffBase  = fileDiffBase{}
	_ storage.CycleBase = fileDiffBase{}
	_ storage.Eraser    = fileDiffBase{}
)

func (s fileDiffBase) Build(body *object.Body, extra []object.Path) object.Essence {
	return storage.BuildEssence(body, extra)
}

func (s fileDiffBase) Fetch(ctx context.Context, body *object.Body) (object.Essence, error) {
	return fetch(ctx, s.file, body, baseKey, storage.DecodeBase)
}

func (s fileDiffBase) Store(ctx context.Context, body *object.Body, _ storage.Patch, essence object.Essence) error {
	// The text has only hashes of the data of Secrets.
	text, _, err := storage.EncodeBase(body, essence, 0)
	if err != nil {
		return err
	}
	return s.put(ctx, body, baseKey, []byte(text))
}

func (s fileDiffBase) FetchCycle(ctx context.Context, body *object.Body) (*storage.Cycle, error) {
	return fetch(ctx, s.file, body, cycleKey, storage.DecodeCycle)
}

func (s fileDiffBase) StoreCycle(ctx context.Context, body *object.Body, _ storage.Patch, c *storage.Cycle) error {
	text, err := storage.EncodeCycle(body, c, 0)
	if err != nil {
		return err
	}
	return s.put(ctx, body, cycleKey, []byte(text))
}

func (s fileDiffBase) PurgeCycle(ctx context.Context, body *object.Body, _ storage.Patch) error {
	return s.remove(ctx, body.UID(), cycleKey)
}

// fetch decodes a value of the object. It returns nothing if there is none.
func fetch[T any](ctx context.Context, from file, body *object.Body, key string, decode func(*object.Body, string) (T, error)) (value T, err error) {
	text, err := from.get(ctx, body.UID(), key)
	if text == nil || err != nil {
		return value, err
	}
	if value, err = decode(body, string(text)); err != nil {
		return value, &storage.BrokenError{What: key, Where: from.location(body.UID(), key), Err: err}
	}
	return value, nil
}
