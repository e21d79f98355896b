package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"time"
)

// sample holds the resources that the process of an operator has used so far, and its
// requests to the API server.
type sample struct {
	CPU        time.Duration // of all threads, in user and kernel mode
	Resident   int64         // bytes of private memory
	Peak       int64         // the most bytes of private memory so far
	Heap       int64         // bytes of Go objects, including uncollected garbage
	Goroutines int
	Requests   requests
	Tallied    tallied
}

// meter measures the process that is the operator.
type meter interface {
	// measure sets what the process has used. It is called several times per second.
	measure(s *sample) error
	// collect collects garbage, and returns memory to the system.
	collect() error
	// startProfile starts a CPU profile with that path. endProfile ends it, and writes a heap
	// profile next to it.
	startProfile(path string) error
	endProfile() error
}

// ownProcess is the meter of this process.
type ownProcess struct{ profile *os.File }

func (*ownProcess) measure(s *sample) error {
	if err := s.process(os.Getpid()); err != nil {
		return err
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	s.Heap, s.Goroutines = int64(memory.HeapAlloc), runtime.NumGoroutine()
	return nil
}

// process sets what the system knows about a process.
func (s *sample) process(pid int) (err error) {
	if s.CPU, err = cpuTime(pid); err != nil {
		return err
	}
	if s.Peak, err = peakMemory(pid); err != nil {
		return err
	}
	s.Resident, err = residentMemory(pid)
	return err
}

func (*ownProcess) collect() error {
	runtime.GC() // finalizers and pools need a second collection
	debug.FreeOSMemory()
	return nil
}

func (o *ownProcess) startProfile(path string) (err error) {
	if o.profile, err = os.Create(filepath.Clean(path)); err != nil {
		return err
	}
	return pprof.StartCPUProfile(o.profile)
}

func (o *ownProcess) endProfile() error {
	pprof.StopCPUProfile()
	file, err := os.Create(heapProfile(o.profile.Name()))
	if err != nil {
		return err
	}
	return errors.Join(o.profile.Close(), pprof.WriteHeapProfile(file), file.Close())
}

// heapProfile returns the path of the heap profile next to a CPU profile.
func heapProfile(cpuProfile string) string { return strings.TrimSuffix(cpuProfile, ".cpu") + ".heap" }

// machine describes the machine.
func machine() string {
	return fmt.Sprintf("%d cores, %s/%s, %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
}
