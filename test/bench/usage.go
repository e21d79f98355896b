package main

import (
	"fmt"
	"runtime"
	"time"
)

// sample holds the resources that the process of an operator has used so far, and its
// requests to the API server.
type sample struct {
	CPU        time.Duration // of all threads, in user and kernel mode
	Resident   int64         // bytes of private memory
	Heap       int64         // bytes of Go objects, including uncollected garbage
	Goroutines int
	Requests   requests
	Tallied    tallied
}

// take measures this process.
func take(counter *counter, tally *tally) (sample, error) {
	cpu, err := cpuTime()
	if err != nil {
		return sample{}, err
	}
	resident, err := residentMemory()
	if err != nil {
		return sample{}, err
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return sample{
		CPU: cpu, Resident: resident, Heap: int64(memory.HeapAlloc),
		Goroutines: runtime.NumGoroutine(), Requests: counter.snapshot(), Tallied: tally.snapshot(),
	}, nil
}

// machine describes the machine.
func machine() string {
	return fmt.Sprintf("%d cores, %s/%s, %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
}
