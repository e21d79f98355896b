package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime returns the CPU time of a process. It reads the clock of the process, whose number
// is that of clock_getcpuclockid(3): /proc has the time in steps of 10 ms, and those of an idle
// operator would look like work.
func cpuTime(pid int) (time.Duration, error) {
	const scheduled = 2
	var spent unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &spent); err != nil {
		return 0, fmt.Errorf("reading the CPU time of process %d: %w", pid, err)
	}
	return time.Duration(spent.Nano()), nil
}

// childrenTime returns the CPU time of the processes that this one has waited for.
func childrenTime() (time.Duration, error) {
	var spent unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &spent); err != nil {
		return 0, fmt.Errorf("reading the CPU time of the programs: %w", err)
	}
	return time.Duration(spent.Utime.Nano() + spent.Stime.Nano()), nil
}

// residentMemory returns the anonymous part of the resident set. The other part is the
// program file, whose pages depend on the code that has run, and which the system drops
// when it needs memory.
func residentMemory(pid int) (int64, error) { return statusField(pid, "RssAnon:") }

// peakMemory returns the largest resident set so far, without the pages of the program file that are resident now.
func peakMemory(pid int) (int64, error) {
	most, err := statusField(pid, "VmHWM:")
	program, err2 := statusField(pid, "RssFile:")
	return most - program, errors.Join(err, err2)
}

func statusField(pid int, field string) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("reading the memory of process %d: %w", pid, err)
	}
	for line := range strings.Lines(string(status)) {
		if value, found := strings.CutPrefix(line, field); found {
			kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, fmt.Errorf("reading the memory of process %d: no field %s", pid, field)
}
