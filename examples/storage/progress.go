package main

import (
	"context"
	"encoding/json"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

// recordKey is the prefix of the keys of the records; the id of the handler follows.
const recordKey = "handler/"

// fileProgress keeps the progress of the handlers while a cycle is open.
type fileProgress struct{ file }

var (
	_ storage.Progress = fileProgress{}
	_ storage.Eraser   = fileProgress{}
)

func (s fileProgress) Fetch(ctx context.Context, body *object.Body, handlerID string) (*storage.Record, error) {
	key := recordKey + handlerID
	text, err := s.get(ctx, body.UID(), key)
	if text == nil || err != nil {
		return nil, err
	}
	record := &storage.Record{}
	if err := json.Unmarshal(text, record); err != nil {
		return nil, &storage.BrokenError{What: "progress of handler " + handlerID, Where: s.location(body.UID(), key), Err: err}
	}
	return record, nil
}

func (s fileProgress) Store(ctx context.Context, body *object.Body, _ storage.Patch, handlerID string, record *storage.Record) error {
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	return s.put(ctx, body, recordKey+handlerID, text)
}

func (s fileProgress) Purge(ctx context.Context, body *object.Body, _ storage.Patch, handlerID string) error {
	return s.remove(ctx, body.UID(), recordKey+handlerID)
}

// Clear has nothing to remove: the objects hold no state.
func (s fileProgress) Clear(essence object.Essence) object.Essence { return essence }
