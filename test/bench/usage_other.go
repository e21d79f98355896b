//go:build !linux

package main

import (
	"errors"
	"time"
)

var errUnsupported = errors.New("the benchmark supports Linux only")

func cpuTime(int) (time.Duration, error) { return 0, errUnsupported }

func childrenTime() (time.Duration, error) { return 0, errUnsupported }

func residentMemory(int) (int64, error) { return 0, errUnsupported }

func peakMemory(int) (int64, error) { return 0, nil }
