package lifecycles_test

import (
	"fmt"

	"github.com/kopf-go/kopf/pkg/lifecycles"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// due are three handlers, of which the second one has not been tried yet.
func due() []lifecycles.Due {
	return []lifecycles.Due{
		{ID: "first", Retries: 2, Object: object.NewBody(nil)},
		{ID: "second", Retries: 0, Object: object.NewBody(nil)},
		{ID: "third", Retries: 1, Object: object.NewBody(nil)},
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

// A lifecycle that decides by the object: objects of the trial tier wait for their turn.
func ExampleDue() {
	var byTier lifecycles.Lifecycle = func(due []lifecycles.Due) []lifecycles.Due {
		if len(due) > 0 && due[0].Object.Labels()["tier"] == "trial" {
			return lifecycles.OneByOne(due)
		}
		return due
	}
	trial := object.NewBody(map[string]any{"metadata": map[string]any{"labels": map[string]any{"tier": "trial"}}})
	handlers := due()
	fmt.Println(len(byTier(handlers)), "handlers of another object")
	for i := range handlers {
		handlers[i].Object = trial
	}
	fmt.Println(len(byTier(handlers)), "handler of a trial")
	// Output:
	// 3 handlers of another object
	// 1 handler of a trial
}
