//go:build unix

package launch

import (
	"os/exec"
	"syscall"
)

// setProcessGroup gives the command a process group of its own. Ctrl-C in a terminal
// reaches a whole group, and two signals would end the operator at once.
func setProcessGroup(command *exec.Cmd) { command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
