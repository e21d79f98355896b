package storage_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

// Database represents an existing table with keys and texts.
type Database struct {
	mu   sync.Mutex
	rows map[string]string
}

func (d *Database) Get(key string) (text string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	text, ok = d.rows[key]
	return text, ok
}

func (d *Database) Put(key, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rows[key] = text
}

func (d *Database) Delete(prefix string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.rows, func(key, _ string) bool { return strings.HasPrefix(key, prefix) })
}

// DatabaseDiffBase stores the bases of all objects by their uids. It leaves the patches
// alone, because it stores nothing on the objects.
type DatabaseDiffBase struct{ db *Database }

var (
	_ storage.DiffBase = DatabaseDiffBase{}
	_ storage.Eraser   = DatabaseDiffBase{}
)

func (s DatabaseDiffBase) Build(body *object.Body, extra []object.Path) object.Essence {
	return storage.BuildEssence(body, extra)
}

func (s DatabaseDiffBase) Fetch(_ context.Context, body *object.Body) (object.Essence, error) {
	key := string(body.UID())
	text, ok := s.db.Get(key)
	if !ok {
		return nil, nil
	}
	essence, err := storage.DecodeBase(body, text)
	if err != nil {
		return nil, &storage.BrokenError{What: "last handled state", Where: "database row " + key, Err: err}
	}
	return essence, nil
}

func (s DatabaseDiffBase) Store(_ context.Context, body *object.Body, _ storage.Patch, essence object.Essence) error {
	text, _, err := storage.EncodeBase(body, essence, 0) // keeps the data of Secrets out of the database
	if err == nil {
		s.db.Put(string(body.UID()), text)
	}
	return err
}

// Erase is called when the object is gone.
func (s DatabaseDiffBase) Erase(_ context.Context, body *object.Body) error {
	s.db.Delete(string(body.UID()))
	return nil
}

// DatabaseProgress stores the records by uid and handler.
type DatabaseProgress struct{ db *Database }

var (
	_ storage.Progress = DatabaseProgress{}
	_ storage.Eraser   = DatabaseProgress{}
)

func (s DatabaseProgress) key(body *object.Body, handlerID string) string {
	return string(body.UID()) + "/" + handlerID
}

func (s DatabaseProgress) Fetch(_ context.Context, body *object.Body, handlerID string) (*storage.Record, error) {
	key := s.key(body, handlerID)
	text, ok := s.db.Get(key)
	if !ok {
		return nil, nil
	}
	record := new(storage.Record)
	if err := json.Unmarshal([]byte(text), record); err != nil {
		return nil, &storage.BrokenError{What: "progress of " + handlerID, Where: "database row " + key, Err: err}
	}
	return record, nil
}

func (s DatabaseProgress) Store(_ context.Context, body *object.Body, _ storage.Patch, handlerID string, record *storage.Record) error {
	text, err := json.Marshal(record)
	if err == nil {
		s.db.Put(s.key(body, handlerID), string(text))
	}
	return err
}

func (s DatabaseProgress) Purge(_ context.Context, body *object.Body, _ storage.Patch, handlerID string) error {
	s.db.Delete(s.key(body, handlerID))
	return nil
}

// Erase is called when the object is gone, possibly in the middle of a cycle.
func (s DatabaseProgress) Erase(_ context.Context, body *object.Body) error {
	s.db.Delete(s.key(body, ""))
	return nil
}

func (s DatabaseProgress) Clear(essence object.Essence) object.Essence { return essence }

// You can store the state elsewhere. These storages use a database, and the objects
// have no annotations of the operator.
func Example() {
	ctx := context.Background()
	db := &Database{rows: map[string]string{}}
	base, progress := DatabaseDiffBase{db}, DatabaseProgress{db}
	body := object.NewBody(map[string]any{
		"metadata": map[string]any{"name": "example", "uid": "d8d94aa7"},
		"spec":     map[string]any{"size": "1G"},
	})

	// While the handlers of a new object are called and retried:
	patch := storage.Patch{}
	_ = progress.Store(ctx, body, patch, "create_fn", &storage.Record{Retries: 1, Message: "not yet"})
	record, _ := progress.Fetch(ctx, body, "create_fn")
	fmt.Println(record.Retries, record.Message)

	// When all of them have finished:
	_ = progress.Purge(ctx, body, patch, "create_fn")
	_ = base.Store(ctx, body, patch, base.Build(body, nil))
	fmt.Println(db.rows)
	fmt.Println("in the patch:", len(patch))

	// When the object is gone:
	_ = base.Erase(ctx, body)
	_ = progress.Erase(ctx, body)
	fmt.Println(db.rows)
	// Output:
	// 1 not yet
	// map[d8d94aa7:{"spec":{"size":"1G"}}]
	// in the patch: 0
	// map[]
}

// Operators that handle the same objects must use different annotations.
func ExampleAnnotationsDiffBase() {
	base := storage.AnnotationsDiffBase{
		Prefix:        "my-op.example.com",
		IgnoredFields: []object.Path{{"metadata", "annotations"}},
	}
	body := object.NewBody(map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"counter": "5"}},
		"spec":     map[string]any{"size": "1G"},
	})
	patch := storage.Patch{}
	_ = base.Store(context.Background(), body, patch, base.Build(body, nil))
	text, _ := json.MarshalIndent(patch, "", "  ")
	fmt.Println(string(text))
	// Output:
	// {
	//   "metadata": {
	//     "annotations": {
	//       "my-op.example.com/kopf-managed": "yes",
	//       "my-op.example.com/last-handled-configuration": "{\"spec\":{\"size\":\"1G\"}}\n"
	//     }
	//   }
	// }
}

// To move from one storage to another, use both for a while, with the new one first.
func ExampleMultiDiffBase() {
	base := storage.MultiDiffBase{
		storage.StatusDiffBase{Field: object.Path{"status", "diff-base"}},
		storage.AnnotationsDiffBase{},
	}
	handled := object.NewBody(map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{
			"kopf.zalando.org/last-handled-configuration": `{"spec":{"size":"1G"}}`,
		}},
	})
	essence, _ := base.Fetch(context.Background(), handled)
	fmt.Println(essence)
	// Output: map[spec:map[size:1G]]
}

// The values of a Secret are compared by their hashes and never shown.
func ExampleHashed() {
	secret := object.NewBody(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"uid": "d8d94aa7"},
		"data": map[string]any{"password": "c2VzYW1l"},
	})
	text, reason, _ := storage.EncodeBase(secret, storage.BuildEssence(secret, nil), 0)
	base, _ := storage.DecodeBase(secret, text)
	old, _ := object.Lookup(base, object.Path{"data", "password"})
	fmt.Println(reason, old, old.(object.Opaque).EqualTo("c2VzYW1l"), old.(object.Opaque).EqualTo("b3BlbiE="))
	// Output: Secret (unknown) true false
}
