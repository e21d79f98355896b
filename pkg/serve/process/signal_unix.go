//go:build unix

package process

import "syscall"

// signalGroup sends a signal to a process group. A group that has ended is none.
func signalGroup(leader int, kill bool) {
	signal := syscall.SIGTERM
	if kill {
		signal = syscall.SIGKILL
	}
	_ = syscall.Kill(-leader, signal)
}
