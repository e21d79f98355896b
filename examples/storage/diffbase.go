package main

import (
	"context"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

// The keys of the two states, beside those of the handlers' records.
const (
	baseKey  = "base"
	firstKey = "first"
)

// fileDiffBase keeps the state of every object that was handled last, and the
// one with which an unfinished handling has begun: what is changed meanwhile, also
// while no operator is running, is the next change.
//
// It leaves the patches alone, so that nothing of it is on the objects.
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
		return nil, &storage.BrokenError{What: key + " state", Where: s.place(body.UID(), key), Err: err}
	}
	return essence, nil
}

func (s fileDiffBase) store(ctx context.Context, body *kopf.Body, key string, essence object.Essence) error {
	// Of the data of Secrets, the text has only hashes.
	text, _, err := storage.EncodeBase(body, essence, 0)
	if err != nil {
		return err
	}
	return s.put(ctx, body.UID(), key, []byte(text))
}
