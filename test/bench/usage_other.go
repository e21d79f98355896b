//go:build !linux

package main

import (
	"errors"
	"time"
)

var errNotHere = errors.New("this benchmark measures processes on Linux only")

func cpuTime() (time.Duration, error) { return 0, errNotHere }

func residentMemory() (int64, error) { return 0, errNotHere }
