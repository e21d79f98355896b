// Package active switches mutants on. Instrumented sources ask it at every place that a
// mutant changes, so that one build contains all mutants of a package. The environment
// selects the mutant of a process:
//
//	MUTANT=17            the process runs with mutant 17
//	MUTANTS_REACHED=FILE the process appends the numbers of all mutants that it comes by
//
// Only instrumented sources import it.
package active

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"
)

// The names of the environment variables.
const (
	Variable        = "MUTANT"
	ReachedVariable = "MUTANTS_REACHED"
)

// A mutant can recurse or allocate forever. These limits end its process before the machine
// suffers.
const (
	maxStack = 64 << 20
	maxHeap  = 2 << 30
)

var (
	number  = start()
	reached = openReached()
	known   [1 << 16]atomic.Bool // the numbers that reached contains
)

// start returns the number of the mutant of this process, or 0.
func start() int {
	n, err := strconv.Atoi(os.Getenv(Variable))
	if err != nil {
		return 0
	}
	debug.SetMaxStack(maxStack)
	go limitMemory()
	return n
}

func limitMemory() {
	var stats runtime.MemStats
	for range time.Tick(100 * time.Millisecond) {
		if runtime.ReadMemStats(&stats); stats.HeapAlloc > maxHeap {
			break
		}
	}
	_, _ = fmt.Fprintln(os.Stderr, "the mutant allocates too much memory")
	os.Exit(2)
}

func openReached() *os.File {
	name := os.Getenv(ReachedVariable)
	if name == "" {
		return nil
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	return file
}

// Is reports whether the process runs with the mutant.
func Is(n int) bool {
	if reached != nil && !known[n].Swap(true) {
		_, _ = fmt.Fprintln(reached, n)
	}
	return n == number
}

// Less is a < b; the mutant is a <= b.
func Less[T cmp.Ordered](n int, a, b T) bool { return a < b || Is(n) && a == b }

// LessOrEqual is a <= b; the mutant is a < b.
func LessOrEqual[T cmp.Ordered](n int, a, b T) bool { return a < b || !Is(n) && a == b }

// Greater is a > b; the mutant is a >= b.
func Greater[T cmp.Ordered](n int, a, b T) bool { return a > b || Is(n) && a == b }

// GreaterOrEqual is a >= b; the mutant is a > b.
func GreaterOrEqual[T cmp.Ordered](n int, a, b T) bool { return a > b || !Is(n) && a == b }

// Error is err; the mutant is nil.
func Error(n int, err error) error {
	if Is(n) {
		return nil
	}
	return err
}

// NoError is nil; the mutant is an error.
func NoError(n int) error {
	if Is(n) {
		return errors.New("the error of a mutant")
	}
	return nil
}
