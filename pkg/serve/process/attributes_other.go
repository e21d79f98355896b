//go:build !unix

package process

import (
	"os"
	"os/exec"
)

// setAttributes does nothing, because this system has no process groups.
func setAttributes(*exec.Cmd, bool) {}

// waitExited reports that this system cannot wait for a process without removing it.
func waitExited(int) bool { return false }

// signalGroup kills a process, because this system cannot ask it to stop.
func signalGroup(leader int, _ bool) {
	if process, err := os.FindProcess(leader); err == nil {
		_ = process.Kill()
	}
}
