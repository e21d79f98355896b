package main

import (
	"context"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

// The keys of the two essences; the keys of the handlers' records are others.
const (
	baseKey  = "base"
	firstKey = "first"
)

// fileDiffBase keeps two essences of every object: the last handled one, and the one
// with which an unfinished cycle began. A change made meanwhile, also while no
// operator is running, then leads to the next cycle.
//
// It does not use the patches, so the objects themselves hold no state.
type fileDiffBase struct{ file }

var (
	_ storage.DiffBase  = fileDiffBase{}
	_ storage.CycleBase = fileDiffBase{}
)

func (s fileDiffBase) Build(body *kopf.Body, extra []object.Path) object.Essence {
	return storage.BuildEssence(body, extra)
}

func (s fileDiffBase) Fetch(ctx context.Context, body *kopf.Body) (object.Essence, error) {
	return s.fetch(ctx, body, baseKey)
}

func (s fileDiffBase) Store(ctx context.Context, body *kopf.Body, _ storage.Patch, essence object.Essence) error {
	return s.store(ctx, body, baseKey, essence)
}

func (s fileDiffBase) FetchCycle(ctx context.Context, body *kopf.Body) (object.Essence, error) {
	return s.fetch(ctx, body, firstKey)
}

func (s fileDiffBase) StoreCycle(ctx context.Context, body *kopf.Body, _ storage.Patch, essence object.Essence) error {
	return s.store(ctx, body, firstKey, essence)
}

func (s fileDiffBase) PurgeCycle(ctx context.Context, body *kopf.Body, _ storage.Patch) error {
	return s.remove(ctx, body.UID(), firstKey)
}

func (s fileDiffBase) fetch(ctx context.Context, body *kopf.Body, key string) (object.Essence, error) {
	text, err := s.get(ctx, body.UID(), key)
	if text == nil || err != nil {
		return nil, err
	}
	essence, err := storage.DecodeBase(body, string(text))
	if err != nil {
		return nil, &storage.BrokenError{What: key + " state", Where: s.location(body.UID(), key), Err: err}
	}
	return essence, nil
}

func (s fileDiffBase) store(ctx context.Context, body *kopf.Body, key string, essence object.Essence) error {
	// The text has only hashes of the data of Secrets.
	text, _, err := storage.EncodeBase(body, essence, 0)
	if err != nil {
		return err
	}
	return s.put(ctx, body.UID(), key, []byte(text))
}
