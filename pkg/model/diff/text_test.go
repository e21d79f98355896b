package diff_test

import (
	"strings"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/object"
)

func TestItemString(t *testing.T) {
	for name, test := range map[string]struct {
		item diff.Item
		want string
	}{
		"an addition shows the new value": {
			diff.Item{Op: diff.Add, Path: object.Path{"spec", "a"}, New: m{"x": "<&>"}}, `add spec.a: {"x":"<&>"}`,
		},
		"a removal shows the old value": {
			diff.Item{Op: diff.Remove, Path: object.Path{"spec", "a"}, Old: int64(1)}, `remove spec.a: 1`,
		},
		"a change shows both": {
			diff.Item{Op: diff.Change, Path: object.Path{"spec", "a"}, Old: false, New: []any{"x"}},
			`change spec.a: false -> ["x"]`,
		},
		"a whole value has no path": {
			diff.Item{Op: diff.Change, Old: "x", New: "y"}, `change: "x" -> "y"`,
		},
		"line breaks stay out of values and keys": {
			diff.Item{Op: diff.Add, Path: object.Path{"a\nb"}, New: "x\ny"}, `add "a\nb": "x\ny"`,
		},
		"an unknown value is not shown": {
			diff.Item{Op: diff.Change, Path: object.Path{"a"}, Old: hashed{"secret"}, New: "y"},
			`change a: (unknown) -> "y"`,
		},
		"an unknown value inside another one is not shown either": {
			diff.Item{Op: diff.Remove, Path: object.Path{"a"}, Old: m{"b": []any{hashed{"secret"}}}},
			`remove a: {"b":["(unknown)"]}`,
		},
		"a value that is not JSON is shown by its type": {
			diff.Item{Op: diff.Add, Path: object.Path{"a"}, New: make(chan int)}, `add a: (chan int)`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.item.String(); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestLongTextsAreTruncated(t *testing.T) {
	long := diff.Item{Op: diff.Change, Path: object.Path{"a"}, Old: strings.Repeat("日", 1000), New: "y"}
	if got := long.String(); !strings.HasSuffix(got, `日… -> "y"`) || len([]rune(got)) > 100 {
		t.Errorf("got %s", got)
	}
	many := make(diff.Diff, 12)
	for i := range many {
		many[i] = diff.Item{Op: diff.Add, Path: object.Path{"a"}, New: "x"}
	}
	if got := many.String(); strings.Count(got, `add a: "x"`) != 10 || !strings.HasSuffix(got, "; and 2 more") {
		t.Errorf("got %s", got)
	}
}
