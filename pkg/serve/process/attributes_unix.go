//go:build unix && !linux

package process

import (
	"os/exec"
	"syscall"
)

// setAttributes makes the command the leader of a process group.
func setAttributes(command *exec.Cmd, _ bool) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// waitExited reports that this system cannot wait for a process without removing it.
func waitExited(int) bool { return false }
