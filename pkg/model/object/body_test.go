package object_test

import (
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// bodies returns a body decoded from a snapshot on first use, and one made from a mapping.
func bodies(t *testing.T) map[string]*object.Body {
	return map[string]*object.Body{
		"of a snapshot": parse(t, full).Body(),
		"of a mapping":  object.NewBody(parse(t, full).Body().Raw()),
	}
}

func TestBodyAccessors(t *testing.T) {
	for name, b := range bodies(t) {
		t.Run(name, func(t *testing.T) {
			note, noted := b.Annotation("note")
			tests := map[string]struct{ got, want any }{
				"name":        {b.Name(), "example"},
				"namespace":   {b.Namespace(), "ns"},
				"uid":         {string(b.UID()), "u-1"},
				"version":     {b.ResourceVersion(), "7"},
				"API version": {b.APIVersion(), "kopf.dev/v1"},
				"kind":        {b.Kind(), "KopfExample"},
				"generation":  {b.Generation(), int64(3)},
				"creation":    {b.CreationTimestamp(), time.Date(2020, 12, 31, 23, 59, 59, 0, time.UTC)},
				"deletion":    {b.Deleting(), true},
				"labels":      {b.Labels(), map[string]string{"app": "demo", "example.com/role": "db"}},
				"annotations": {b.Annotations(), map[string]string{"note": "naïve ☃ 😀"}},
				"annotation":  {[]any{note, noted}, []any{"naïve ☃ 😀", true}},
				"finalizers":  {b.Finalizers(), []string{"a.dev/one", "b.dev/two"}},
				"status":      {b.Status().Map(), map[string]any{"phase": "Ready"}},
				"spec": {b.Spec().Map(), map[string]any{
					"size": int64(1), "ratio": 0.5, "on": true, "none": nil, "list": []any{"a", "b"},
				}},
			}
			for name, test := range tests {
				if !reflect.DeepEqual(test.got, test.want) {
					t.Errorf("%s: got %v, want %v", name, test.got, test.want)
				}
			}
		})
	}
}

func TestEmptyBodyHasZeroValuesButNoNils(t *testing.T) {
	for name, b := range map[string]*object.Body{
		"of a snapshot":  parse(t, `{}`).Body(),
		"of a mapping":   object.NewBody(map[string]any{}),
		"of nothing":     object.NewBody(nil),
		"of other types": object.NewBody(map[string]any{"metadata": "a", "spec": []any{}, "kind": int64(1)}),
	} {
		t.Run(name, func(t *testing.T) {
			if b.Name() != "" || b.UID() != "" || b.Kind() != "" || b.Generation() != 0 || b.Deleting() || !b.CreationTimestamp().IsZero() {
				t.Errorf("got %v", b.Raw())
			}
			if b.Labels() == nil || b.Annotations() == nil || b.Spec().Map() == nil || len(b.Finalizers()) != 0 {
				t.Errorf("got %v, %v, %v, %v", b.Labels(), b.Annotations(), b.Spec().Map(), b.Finalizers())
			}
			if value, found := b.Lookup(object.Path{"metadata", "name"}); found {
				t.Errorf("found %v", value)
			}
		})
	}
}

// Modifying a returned value must not affect other readers.
func TestBodyIsImmutable(t *testing.T) {
	for name, b := range bodies(t) {
		t.Run(name, func(t *testing.T) {
			b.Labels()["app"] = "spoilt"
			b.Annotations()["note"] = "spoilt"
			b.Finalizers()[0] = "spoilt"
			b.Spec().Map()["size"] = "spoilt"
			b.View().Map()["spec"].(map[string]any)["size"] = "spoilt"
			list, _ := b.Spec().List("list")
			list[0] = "spoilt"
			value, _ := b.View().Value("spec")
			value.(map[string]any)["size"] = "spoilt"
			texts, _ := b.Spec().Strings("list")
			texts[0] = "spoilt"
			b.Meta().StringMap("labels")["app"] = "spoilt"
			object.NewValue(b.Raw()).Any().(map[string]any)["kind"] = "spoilt"
			if want := parse(t, full).Body(); !reflect.DeepEqual(b.Raw(), want.Raw()) {
				t.Errorf("got %v, want %v", b.Raw(), want.Raw())
			}
		})
	}
}

func TestBodyIsDecodedOnceAndOnDemand(t *testing.T) {
	s := parse(t, full)
	idle := testing.AllocsPerRun(100, func() {
		b := s.Body()
		_, _, _, _ = b.Name(), b.Namespace(), b.UID(), b.ResourceVersion()
	})
	if idle > 1 { // the body itself
		t.Errorf("the identity costs %v allocations", idle)
	}
	b := s.Body()
	first := b.Raw()
	if again := testing.AllocsPerRun(100, func() { b.Raw() }); again != 0 {
		t.Errorf("the second reader costs %v allocations", again)
	}
	if reflect.ValueOf(s.Body().Raw()).Pointer() == reflect.ValueOf(first).Pointer() {
		t.Error("two bodies of one snapshot share their memory")
	}
}

func TestBodyIsSafeForConcurrentUse(t *testing.T) {
	s := parse(t, full)
	shared := s.Body()
	var readers sync.WaitGroup
	for range 16 {
		readers.Go(func() {
			for _, b := range []*object.Body{shared, s.Body()} {
				if size, ok := b.Spec().Int64("size"); !ok || size != 1 || b.Labels()["app"] != "demo" || !s.Deleting() {
					t.Errorf("got %v", b.Raw())
				}
			}
		})
	}
	readers.Wait()
}

func TestBodyIsDecodedIntoATypedObject(t *testing.T) {
	var typed struct {
		Kind string `json:"kind"`
		Spec struct {
			Size  int      `json:"size"`
			Ratio float64  `json:"ratio"`
			List  []string `json:"list"`
		} `json:"spec"`
	}
	if err := parse(t, full).Body().Decode(&typed); err != nil {
		t.Fatal(err)
	}
	if typed.Kind != "KopfExample" || typed.Spec.Size != 1 || typed.Spec.Ratio != 0.5 || len(typed.Spec.List) != 2 {
		t.Errorf("got %+v", typed)
	}
}

func TestBodyOfNonJSONValuesHasNoText(t *testing.T) {
	if text, err := object.NewBody(map[string]any{"a": make(chan int)}).JSON(); err == nil {
		t.Errorf("got %s", text)
	}
}

// Numbers are decoded as int64 and float64, up to the largest ones: 64-bit counters must
// not be rounded.
func TestNumbersKeepTheirValue(t *testing.T) {
	tests := map[string]struct {
		text string
		want any
	}{
		"zero":                        {"0", int64(0)},
		"negative":                    {"-5", int64(-5)},
		"the largest whole number":    {"9223372036854775807", int64(9223372036854775807)},
		"larger than that":            {"9223372036854775808", 9223372036854775808.0},
		"more than a float can store": {"9007199254740993", int64(9007199254740993)},
		"with a fraction":             {"0.1", 0.1},
		"with a fraction of zero":     {"1.0", 1.0},
		"in scientific notation":      {"1e3", 1000.0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, _ := parse(t, `{"a":`+test.text+`}`).Body().Lookup(object.Path{"a"})
			if got != test.want {
				t.Errorf("got %T %v, want %T %v", got, got, test.want, test.want)
			}
		})
	}
}
