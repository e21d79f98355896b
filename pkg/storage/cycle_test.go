package storage_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

// sized returns an essence with a text of this length.
func sized(length int) object.Essence {
	return object.Essence{"spec": map[string]any{"text": strings.Repeat("x", length)}}
}

func ExampleEncodeCycle() {
	body := object.NewBody(map[string]any{"kind": "Example"})
	open := &storage.Cycle{
		Token: "4711", First: object.Essence{"spec": "a"},
		States: []object.Essence{{"spec": "b"}}, At: map[string]int{"create_fn": 0},
	}
	text, _ := storage.EncodeCycle(body, open, 0)
	fmt.Println(text)
	again, _ := storage.DecodeCycle(body, text)
	fmt.Println(again.Token, again.First, again.States, again.At)
	// Output:
	// {"cycle":"4711","first":{"spec":"a"},"states":[{"spec":"b"}],"at":{"create_fn":0}}
	// 4711 map[spec:a] [map[spec:b]] map[create_fn:0]
}

func TestCycleIsShortenedToItsLimit(t *testing.T) {
	open := &storage.Cycle{
		Token: "1", First: sized(100), States: []object.Essence{sized(101), sized(102), sized(103)},
		At: map[string]int{"a": 0, "b": 1, "c": 2},
	}
	whole, err := storage.EncodeCycle(annotated(nil), open, 0)
	noError(t, err)
	tests := map[string]struct {
		limit  int
		states int
		at     map[string]int
		again  []string
		hashed bool
	}{
		"everything fits":                       {len(whole), 3, map[string]int{"a": 0, "b": 1, "c": 2}, nil, false},
		"the values are hashed":                 {len(whole) - 1, 3, map[string]int{"a": 0, "b": 1, "c": 2}, nil, true},
		"the last state is left out":            {280, 2, map[string]int{"a": 0, "b": 1, "c": 1}, []string{"c"}, true},
		"all states but the first are left out": {145, 0, nil, []string{"a", "b", "c"}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			text, err := storage.EncodeCycle(annotated(nil), open, test.limit)
			if err != nil || len(text) > test.limit || strings.Contains(text, "kopf-hashed") != test.hashed {
				t.Fatalf("got %d bytes, %v: %s", len(text), err, text)
			}
			c, err := storage.DecodeCycle(annotated(nil), text)
			noError(t, err)
			if len(c.States) != test.states || len(c.At) != len(test.at) || len(test.at) > 0 && !reflect.DeepEqual(c.At, test.at) {
				t.Errorf("got %d states, %v", len(c.States), c.At)
			}
			if !slices.Equal(c.Again, test.again) {
				t.Errorf("%q have ended later", c.Again)
			}
			if object.Equal(c.First, sized(99)) || !object.Equal(c.First, sized(100)) {
				t.Errorf("got %v", c.First)
			}
		})
	}
	t.Run("not even the first state fits", func(t *testing.T) {
		if text, err := storage.EncodeCycle(annotated(nil), open, 20); err == nil {
			t.Errorf("got %s", text)
		}
	})
}

func TestCycleOfTheFormerFormatIsRead(t *testing.T) {
	c, err := storage.DecodeCycle(annotated(nil), `{"spec":{"size":1},"kopf-cycle-since":"2024-02-14T16:58:25.5Z"}`)
	since := time.Date(2024, 2, 14, 16, 58, 25, 500_000_000, time.UTC)
	if err != nil || c.Token != "" || !c.Since.Equal(since) || !object.Equal(c.First, object.Essence{"spec": map[string]any{"size": int64(1)}}) {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestBrokenCycles(t *testing.T) {
	tests := map[string]string{
		"the first state is missing":       `{"cycle":"1"}`,
		"the first state is no mapping":    `{"cycle":"1","first":"sesame"}`,
		"a state is no mapping":            `{"cycle":"1","first":{},"states":["sesame"]}`,
		"an index is too large":            `{"cycle":"1","first":{},"states":[{}],"at":{"a":1}}`,
		"an index is too small":            `{"cycle":"1","first":{},"states":[{}],"at":{"a":-2}}`,
		"an index is no integer":           `{"cycle":"1","first":{},"states":[{}],"at":{"a":"0"}}`,
		"the ids to call again are none":   `{"cycle":"1","first":{},"again":"a"}`,
		"an id to call again is no text":   `{"cycle":"1","first":{},"again":[1]}`,
		"the hashes of a state are broken": `{"cycle":"1","first":{"kopf-hashed":7}}`,
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			if c, err := storage.DecodeCycle(annotated(nil), text); err == nil || strings.Contains(err.Error(), "sesame") {
				t.Errorf("got %+v, %v", c, err)
			}
		})
	}
}

func TestCycleHasNoIgnoredFields(t *testing.T) {
	ctx, body := t.Context(), annotated(nil)
	open := &storage.Cycle{Token: "1", First: sized(1), States: []object.Essence{sized(2)}, At: map[string]int{"a": 0}}
	ignored := []object.Path{{"spec", "text"}}
	for name, base := range map[string]storage.CycleBase{
		"in an annotation": storage.AnnotationsDiffBase{IgnoredFields: ignored},
		"in the status":    storage.StatusDiffBase{IgnoredFields: ignored},
	} {
		t.Run(name, func(t *testing.T) {
			patch := storage.Patch{}
			noError(t, base.StoreCycle(ctx, body, patch, open))
			c, err := base.FetchCycle(ctx, applied(body, patch))
			if err != nil || len(c.First) > 0 || len(c.States) != 1 || len(c.States[0]) > 0 {
				t.Errorf("got %+v, %v", c, err)
			}
		})
	}
}
