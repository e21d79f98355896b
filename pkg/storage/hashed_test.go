package storage_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

func TestHashesAreStoredAgainAsTheyAre(t *testing.T) {
	ctx, base := t.Context(), storage.AnnotationsDiffBase{}
	body := bodyOf(t, secretJSON)
	essence := base.Build(body, nil)
	patch := storage.Patch{}
	noError(t, base.StoreCycle(ctx, body, patch, &storage.Cycle{Token: "1", First: essence}))
	body = applied(body, patch)
	open, err := base.FetchCycle(ctx, body)
	noError(t, err)
	cycle := open.First

	fetched, text, reason := roundTrip(t, body, cycle)
	_, direct, _ := roundTrip(t, body, essence)
	if text != direct || reason != storage.HashedSecret || differences(fetched, essence) != nil {
		t.Errorf("got %s, want %s", text, direct)
	}
	if got := differences(fetched, cycle); got != nil {
		t.Errorf("two hashed essences of the same state differ at %q", got)
	}

	// The status has no limit, but unknown values must not be stored as nulls there.
	status := storage.StatusDiffBase{}
	patch = storage.Patch{}
	noError(t, status.Store(ctx, annotated(nil), patch, cycle))
	inStatus, err := status.Fetch(ctx, applied(body, patch))
	noError(t, err)
	if got := differences(inStatus, essence); got != nil || status.Hashes(body, patch, essence) != storage.HashedSecret {
		t.Errorf("it differs at %q", got)
	}
}

func TestHashesOfAnotherObjectDiffer(t *testing.T) {
	body := bodyOf(t, secretJSON)
	text, _, err := storage.EncodeBase(body, storage.BuildEssence(body, nil), 0)
	noError(t, err)
	copied := bodyOf(t, strings.Replace(secretJSON, "uid1", "uid2", 1))
	fetched, err := storage.DecodeBase(copied, text)
	noError(t, err)
	want := []string{"data.password", "data.same"}
	if got := differences(fetched, storage.BuildEssence(copied, nil)); !slices.Equal(got, want) {
		t.Errorf("got changes at %q, want %q", got, want)
	}
}

func TestHashedComparesGoValues(t *testing.T) {
	body := bodyOf(t, `{"apiVersion": "v1", "kind": "Secret", "data": {"n": 5, "l": ["a"], "m": {"x": {"y": 1}}}}`)
	fetched, _, _ := roundTrip(t, body, storage.BuildEssence(body, nil))
	data, _ := fetched["data"].(map[string]any)
	for name, test := range map[string]struct {
		hashed, value any
		want          bool
	}{
		"an int":           {data["n"], 5, true},
		"a float":          {data["n"], 5.0, true},
		"a text of it":     {data["n"], "5", false},
		"another int":      {data["n"], 6, false},
		"nothing":          {data["n"], nil, false},
		"a typed list":     {data["l"], []string{"a"}, true},
		"another list":     {data["l"], []any{"b"}, false},
		"what is not JSON": {data["n"], func() {}, false},
		"itself":           {data["n"], data["n"], true},
		"another hash":     {data["n"], data["l"], false},
		"the negative":     {data["n"], -5.0, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.hashed.(object.Opaque).EqualTo(test.value); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// TestHashedFormat checks the format that formats.md describes. Its digests were computed
// by another program: if they change, every hashed object of every cluster counts as
// changed.
func TestHashedFormat(t *testing.T) {
	many := map[string]any{}
	for i := range 1000 {
		many[fmt.Sprintf("key%04d", i)] = strings.Repeat("v", 300)
	}
	for name, test := range map[string]struct {
		body    *object.Body
		essence map[string]any
		want    string
	}{
		"a secret": {
			bodyOf(t, strings.Replace(secretJSON, `, "same": "c2VzYW1l"`, ``, 1)), nil,
			`{"kopf-hashed":1,"known":{"metadata":{"labels":{"app":"a"}},"type":"Opaque"},"hashed":{"data":{"password":"xrO0EwBepwJuEmZe1_GBtg"}}}`,
		},
		"a large mapping": {
			annotated(nil),
			map[string]any{"data": many, "spec": int64(1)},
			`{"kopf-hashed":1,"known":{"spec":1},"hashed":{"data":"48i3WRRrA2nkcu7-c0OHXw"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.essence == nil {
				test.essence = storage.BuildEssence(test.body, nil)
			}
			got, _, err := storage.EncodeBase(test.body, test.essence, 100_000)
			noError(t, err)
			if got != test.want {
				t.Errorf("\n got %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestHashedRoundTripOfAnyEssence stores random essences: whatever the limit, the fetched
// essence equals the original, and the text is short enough.
func TestHashedRoundTripOfAnyEssence(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	body := annotated(nil)
	for range 500 {
		essence := map[string]any{"a": randomValue(random, 5), "b": randomValue(random, 5), "kopf-hashed": randomValue(random, 1)}
		limit := 200 + random.IntN(2000)
		text, _, err := storage.EncodeBase(body, essence, limit)
		if err != nil || len(text) > limit {
			t.Fatalf("%d bytes of %d: %v", len(text), limit, err)
		}
		fetched, err := storage.DecodeBase(body, text)
		noError(t, err)
		if changes := differences(fetched, essence); changes != nil {
			t.Fatalf("%v\nis stored as %s\nand differs at %q", essence, text, changes)
		}
	}
}

func randomValue(random *rand.Rand, depth int) any {
	switch random.IntN(8) {
	case 0:
		return random.Int64()
	case 1:
		return random.Float64()
	case 2:
		return nil
	case 3:
		return []any{randomValue(random, 0), map[string]any{"x": nil}}
	case 4:
		return strings.Repeat("é<", random.IntN(100))
	}
	mapping := map[string]any{}
	for i := range depth * random.IntN(4) {
		mapping[strings.Repeat(`"`, i)] = randomValue(random, depth-1)
	}
	return mapping
}

func FuzzDecodeBase(f *testing.F) {
	f.Add(`{"spec":{"size":1.5e3,"a":null}}`)
	f.Add(`{"kopf-hashed":1,"known":{"a":{"b":1}},"hashed":{"a":{"c":"0123456789012345678901"},"d":"0123456789012345678901"}}`)
	f.Add(`{"kopf-hashed":1,"known":{"a":1},"hashed":{"a":{"b":{}}}}`)
	f.Add(strings.Repeat(`{"a":`, 100))
	f.Fuzz(func(t *testing.T, text string) {
		body := annotated(nil)
		first, err := storage.DecodeBase(body, text)
		if err != nil || first == nil {
			return
		}
		again, _, err := storage.EncodeBase(body, first, 0)
		noError(t, err)
		second, err := storage.DecodeBase(body, again)
		noError(t, err)
		if changes := differences(first, second); changes != nil {
			t.Errorf("%s became %s and differs at %q", text, again, changes)
		}
	})
}
