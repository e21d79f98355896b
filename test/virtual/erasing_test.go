package virtual

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

// database is a storage outside of the cluster, with a row for each value. It is safe for concurrent use.
type database struct {
	mu   sync.Mutex
	rows map[string]string
	// before is called before each access, and can wait or fail. Nil does nothing.
	before func(ctx context.Context, action string, body *object.Body) error
}

// option lets an operator use the database.
func (d *database) option() kopftest.Option {
	return kopftest.Settings(func(s *kopf.Settings) {
		s.Persistence.DiffBase, s.Persistence.Progress = databaseBase{d}, databaseProgress{d}
	})
}

func (d *database) access(ctx context.Context, action string, body *object.Body, then func()) error {
	d.mu.Lock()
	before := d.before
	d.mu.Unlock()
	if before != nil {
		if err := before(ctx, action, body); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rows == nil {
		d.rows = map[string]string{}
	}
	then()
	return nil
}

// behave changes what happens before each access.
func (d *database) behave(before func(ctx context.Context, action string, body *object.Body) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.before = before
}

// uids returns the objects with rows.
func (d *database) uids() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := map[string]bool{}
	for key := range d.rows {
		uid, _, _ := strings.Cut(key, "/")
		found[uid] = true
	}
	return slices.Sorted(maps.Keys(found))
}

func (d *database) get(ctx context.Context, body *object.Body, key string) (text string, err error) {
	err = d.access(ctx, "get", body, func() { text = d.rows[string(body.UID())+"/"+key] })
	return text, err
}

func (d *database) put(ctx context.Context, body *object.Body, key, text string) error {
	return d.access(ctx, "put", body, func() { d.rows[string(body.UID())+"/"+key] = text })
}

func (d *database) remove(ctx context.Context, body *object.Body, key string) error {
	return d.access(ctx, "remove", body, func() { delete(d.rows, string(body.UID())+"/"+key) })
}

// Erase implements storage.Eraser for both storages.
func (d *database) Erase(ctx context.Context, body *object.Body) error {
	return d.access(ctx, "erase", body, func() {
		maps.DeleteFunc(d.rows, func(key, _ string) bool { return strings.HasPrefix(key, string(body.UID())+"/") })
	})
}

type databaseBase struct{ *database }

func (s databaseBase) Build(body *object.Body, extra []object.Path) object.Essence {
	return storage.BuildEssence(body, extra)
}

func (s databaseBase) Fetch(ctx context.Context, body *object.Body) (object.Essence, error) {
	text, err := s.get(ctx, body, "base")
	if err != nil || text == "" {
		return nil, err
	}
	return storage.DecodeBase(body, text)
}

func (s databaseBase) Store(ctx context.Context, body *object.Body, _ storage.Patch, essence object.Essence) error {
	text, _, err := storage.EncodeBase(body, essence, 0)
	if err != nil {
		return err
	}
	return s.put(ctx, body, "base", text)
}

type databaseProgress struct{ *database }

func (s databaseProgress) Fetch(ctx context.Context, body *object.Body, id string) (*storage.Record, error) {
	text, err := s.get(ctx, body, id)
	if err != nil || text == "" {
		return nil, err
	}
	record := &storage.Record{}
	return record, json.Unmarshal([]byte(text), record)
}

func (s databaseProgress) Store(ctx context.Context, body *object.Body, _ storage.Patch, id string, record *storage.Record) error {
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	return s.put(ctx, body, id, string(text))
}

func (s databaseProgress) Purge(ctx context.Context, body *object.Body, _ storage.Patch, id string) error {
	return s.remove(ctx, body, id)
}

func (databaseProgress) Clear(essence object.Essence) object.Essence { return essence }

// expectRows expects that the database has rows of as many objects.
func (d *database) expectRows(t *testing.T, objects int) {
	t.Helper()
	if got := d.uids(); len(got) != objects {
		t.Errorf("there are rows of the objects %q, want %d", got, objects)
	}
}

func named(name string) *unstructured.Unstructured {
	o := newExample()
	o.SetName(name)
	return o
}

func TestStoragesHearTheEndOfObjects(t *testing.T) {
	tests := map[string]func(r *kopf.Registry){
		"deleted at once": func(r *kopf.Registry) { r.OnUpdate(examples, once, kopf.ID("update")) },
		"released after its deletion handler": func(r *kopf.Registry) {
			r.OnDelete(examples, func(_ context.Context, c *kopf.Change) error {
				if c.Retry() == 0 {
					return kopf.Temporary(errors.New("not yet"), time.Minute)
				}
				return nil
			}, kopf.ID("delete"))
		},
		"deleted while a handler is running": func(r *kopf.Registry) {
			r.OnUpdate(examples, func(context.Context, *kopf.Change) error { time.Sleep(time.Hour); return nil }, kopf.ID("update"))
		},
		"deleted while a handler is retried": func(r *kopf.Registry) {
			r.OnCreate(examples, func(context.Context, *kopf.Change) error { return errors.New("never") }, kopf.ID("create"))
		},
		"deleted while a timer is running": func(r *kopf.Registry) {
			r.Timer(examples, func(_ context.Context, tick *kopf.Tick) error {
				if tick.Name() == "one" {
					time.Sleep(time.Hour)
				}
				return nil
			}, kopf.ID("timer"), kopf.Schedule("@hourly"))
		},
	}
	under := map[string]kopftest.Option{
		"": kopftest.Settings(func(*kopf.Settings) {}),
		", under selectors": kopftest.Settings(func(s *kopf.Settings) {
			s.Watching.LabelSelectors = map[string]string{"kopfexamples": "!hidden"}
		}),
	}
	for name, declare := range tests {
		for selectors, selecting := range under {
			t.Run(name+selectors, func(t *testing.T) { testErasing(t, declare, selecting) })
		}
	}
}

func testErasing(t *testing.T, declare func(r *kopf.Registry), selecting kopftest.Option) {
	t.Helper()
	d := &database{}
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("other"))
		declare(r)
	}, func(t *testing.T, h *kopftest.Harness) {
		one, two := named("one"), named("two")
		h.Create(one)
		h.Create(two)
		h.Advance(90 * time.Minute)
		h.Patch(one, `{"spec": {"size": 4}}`)
		h.Advance(time.Minute)
		d.expectRows(t, 2)
		h.Delete(one)
		h.Advance(3 * time.Hour)
		if h.Exists(one) {
			t.Fatal("the object is not released")
		}
		d.expectRows(t, 1)
	}, d.option(), selecting)
}

// A storage that erases slowly, or not at all, holds back nothing: not even an object that is created again.
func TestErasingHoldsBackNothing(t *testing.T) {
	d := &database{}
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("create"))
		r.OnDelete(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("delete"))
	}, func(t *testing.T, h *kopftest.Harness) {
		one := named("one")
		h.Create(one)
		h.Settle()
		fails := true
		d.behave(func(ctx context.Context, action string, _ *object.Body) error {
			switch {
			case action != "erase":
				return nil
			case fails:
				return errors.New("the database is down")
			default:
				time.Sleep(time.Hour)
				return nil
			}
		})
		h.Delete(one)
		h.Settle()
		again := named("one")
		h.Create(again)
		h.Advance(time.Second)
		if calls := h.Calls("create"); len(calls) != 2 {
			t.Errorf("while erasing fails: %v", calls)
		}
		d.expectRows(t, 2)
		fails = false
		h.Delete(again)
		h.Settle()
		h.Create(named("one"))
		h.Advance(time.Second)
		if calls := h.Calls("create"); len(calls) != 3 {
			t.Errorf("while erasing takes long: %v", calls)
		}
		h.Advance(3 * time.Hour)
		d.expectRows(t, 1)
	}, d.option())
}

// The objects whose storage is slow are more than the workers.
func TestASlowStorageHoldsOnlyItsOwnObject(t *testing.T) {
	d := &database{}
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("create"))
	}, func(t *testing.T, h *kopftest.Harness) {
		const slow = 20
		d.behave(func(_ context.Context, _ string, body *object.Body) error {
			if strings.HasPrefix(body.Name(), "slow-") {
				time.Sleep(time.Minute)
			}
			return nil
		})
		for i := range slow {
			h.Create(named(fmt.Sprint("slow-", i)))
		}
		h.Create(named("quick"))
		h.Advance(5 * time.Second)
		if calls := h.Calls("create"); len(calls) != 1 || calls[0].Object != "default/quick" {
			t.Errorf("got %v", calls)
		}
		h.Advance(time.Hour)
		if calls := h.Calls("create"); len(calls) != 1+slow {
			t.Errorf("got %v", calls)
		}
		d.expectRows(t, 1+slow)
	}, d.option(), kopftest.Settings(func(s *kopf.Settings) { s.Execution.Workers = 1 }))
}

// An orderly stop makes one more attempt.
func TestStoppedOperatorsTellStorages(t *testing.T) {
	d := &database{}
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("create"))
	}, func(t *testing.T, h *kopftest.Harness) {
		one, two := named("one"), named("two")
		h.Create(one)
		h.Create(two)
		h.Settle()
		down := "one"
		d.behave(func(_ context.Context, action string, body *object.Body) error {
			if action == "erase" && (down == "both" || body.Name() == down) {
				return errors.New("the database is down")
			}
			return nil
		})
		down = "both"
		h.Delete(one)
		h.Delete(two)
		h.Advance(time.Minute)
		d.expectRows(t, 2)
		down = "one"
		h.Stop()
		h.Start()
		h.Advance(time.Hour)
		d.expectRows(t, 1) // the next operator has not seen the object
		kept := 0
		for _, line := range h.Logs() {
			if strings.Contains(line.Message, "a storage still keeps its data") {
				kept++
			}
		}
		if kept != 1 {
			t.Errorf("%d lines of the log say what a storage keeps", kept)
		}
	}, d.option())
}

// An operator that begins to work reads what is stored about all objects with a revision. A storage that misbehaves for
// one of them ends neither the operator nor the work on the others, and one that is slow is asked about many at once.
func TestStoragesThatMisbehaveAtTheStartHoldOnlyTheirObject(t *testing.T) {
	for name, misbehave := range map[string]func(){"a panic": func() { panic("oops") }, "the end of the goroutine": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			d := &database{}
			withOperator(t, func(r *kopf.Registry) {
				r.OnUpdate(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("update"), kopf.Revision("1"))
			}, func(t *testing.T, h *kopftest.Harness) {
				const objects = 100
				for i := range objects {
					h.Create(named(fmt.Sprint("one-", i)))
				}
				h.Settle()
				h.Stop()
				d.behave(func(_ context.Context, _ string, body *object.Body) error {
					time.Sleep(10 * time.Millisecond)
					if body.Name() == "one-0" {
						misbehave()
					}
					return nil
				})
				h.Start()
				h.Patch(named("one-1"), `{"spec": {"size": 4}}`)
				h.Advance(time.Second)
				if calls := h.Calls("update"); len(calls) != 1 || calls[0].Object != "default/one-1" {
					t.Errorf("got %v", calls)
				}
			}, d.option())
		})
	}
}
