//go:build unix

package launch

import (
	"os/exec"
	"syscall"
)

// setProcessGroup runs the command in a separate process group. Ctrl-C in a terminal
// signals a whole group, and two signals would end the operator at once.
func setProcessGroup(command *exec.Cmd) { command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
