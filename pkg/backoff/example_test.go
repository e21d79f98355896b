package backoff_test

import (
	"fmt"
	"time"

	"github.com/kopf-go/kopf/pkg/backoff"
)

// The pause is the same after every attempt.
func ExampleConstant() {
	b := backoff.Constant(10 * time.Second)
	fmt.Println(b.Delay(0), b.Delay(1), b.Delay(2))
	// Output: 10s 10s 10s
}

// The pauses double up to the longest one. Chance shortens each of them by up to a fifth.
func ExampleExponential() {
	b := backoff.Exponential(time.Second, 10*time.Second)
	for attempt, seconds := range []int{1, 2, 4, 8, 10, 10} {
		most := time.Duration(seconds) * time.Second
		pause := b.Delay(attempt)
		fmt.Println(most, most*4/5 <= pause && pause <= most)
	}
	// Output:
	// 1s true
	// 2s true
	// 4s true
	// 8s true
	// 10s true
	// 10s true
}
