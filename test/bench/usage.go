package main

import (
	"fmt"
	"runtime"
	"time"
)

// sample is what an operator's process has used until now, and has asked of the
// API server.
type sample struct {
	CPU        time.Duration // of all threads, in user and in kernel mode
	Resident   int64         // bytes in memory that belong to the process alone
	Heap       int64         // bytes of live and not yet collected Go objects
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

// machine describes where the figures come from.
func machine() string {
	return fmt.Sprintf("%d cores, %s/%s, %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
}
