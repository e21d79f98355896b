package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func cpuTime() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("reading the CPU time of the process: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}

// residentMemory returns the anonymous part of the resident set. The other part is the
// program file, whose pages depend on the code that has run, and which the system drops
// when it needs memory.
func residentMemory() (int64, error) { return statusField("RssAnon:") }

func statusField(field string) (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("reading the memory of the process: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		if value, found := strings.CutPrefix(line, field); found {
			kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, fmt.Errorf("reading the memory of the process: no field %s", field)
}
