package lifecycles_test

import (
	"fmt"

	"github.com/kopf-go/kopf/pkg/lifecycles"
	"github.com/kopf-go/kopf/pkg/model/handler"
)

// due are three handlers, of which the second one has not been tried yet.
func due() []lifecycles.Due {
	return []lifecycles.Due{
		{Declaration: &handler.Declaration{ID: "first"}, Retries: 2},
		{Declaration: &handler.Declaration{ID: "second"}, Retries: 0},
		{Declaration: &handler.Declaration{ID: "third"}, Retries: 1},
	}
}

func show(chosen []lifecycles.Due) {
	for _, d := range chosen {
		fmt.Print(d.ID, " ")
	}
	fmt.Println()
}

func ExampleAllAtOnce() {
	show(lifecycles.AllAtOnce(due()))
	// Output: first second third
}

func ExampleOneByOne() {
	show(lifecycles.OneByOne(due()))
	// Output: first
}

// A handler that fails again and again does not keep the others waiting.
func ExampleAsSoonAsPossible() {
	show(lifecycles.AsSoonAsPossible(due()))
	// Output: second
}

func ExampleShuffled() {
	fmt.Println(len(lifecycles.Shuffled(due())), len(lifecycles.Randomized(due())))
	// Output: 3 1
}

// A lifecycle of your own, for Settings.Execution.Lifecycle: at most two handlers in one pass.
func ExampleLifecycle() {
	var two lifecycles.Lifecycle = func(due []lifecycles.Due) []lifecycles.Due { return due[:min(2, len(due))] }
	show(two(due()))
	// Output: first second
}
