package lifecycles_test

import (
	"slices"
	"testing"

	"github.com/kopf-go/kopf/pkg/lifecycles"
)

func TestLifecycles(t *testing.T) {
	three := []lifecycles.Due{{Retries: 2}, {Retries: 0}, {Retries: 1}}
	tests := map[string]struct {
		lifecycle lifecycles.Lifecycle
		due       []lifecycles.Due
		want      []int // the numbers of retries, which identify the handlers
	}{
		"all at once":                     {lifecycles.AllAtOnce, three, []int{2, 0, 1}},
		"one by one":                      {lifecycles.OneByOne, three, []int{2}},
		"as soon as possible":             {lifecycles.AsSoonAsPossible, three, []int{0}},
		"as soon as possible, in order":   {lifecycles.AsSoonAsPossible, []lifecycles.Due{{Retries: 1}, {Retries: 1}}, []int{1}},
		"all at once, of nothing":         {lifecycles.AllAtOnce, nil, nil},
		"one by one, of nothing":          {lifecycles.OneByOne, nil, nil},
		"as soon as possible, of nothing": {lifecycles.AsSoonAsPossible, nil, nil},
		"randomized, of nothing":          {lifecycles.Randomized, nil, nil},
		"shuffled, of nothing":            {lifecycles.Shuffled, nil, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := retries(test.lifecycle(test.due)); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
	if got := retries(three); !slices.Equal(got, []int{2, 0, 1}) {
		t.Errorf("the function has changed its argument to %v", got)
	}
}

func TestRandomLifecyclesOmitNoHandler(t *testing.T) {
	five := []lifecycles.Due{{Retries: 0}, {Retries: 1}, {Retries: 2}, {Retries: 3}, {Retries: 4}}
	first := map[int]bool{}
	for range 1000 {
		one := lifecycles.Randomized(five)
		if len(one) != 1 {
			t.Fatalf("got %d handlers", len(one))
		}
		first[one[0].Retries] = true
		if all := retries(lifecycles.Shuffled(five)); !slices.Equal(slices.Sorted(slices.Values(all)), retries(five)) {
			t.Fatalf("got %v", all)
		}
	}
	if len(first) != len(five) || !slices.Equal(retries(five), []int{0, 1, 2, 3, 4}) {
		t.Errorf("got %v of %v", first, retries(five))
	}
}

func retries(due []lifecycles.Due) []int {
	var numbers []int
	for _, one := range due {
		numbers = append(numbers, one.Retries)
	}
	return numbers
}
