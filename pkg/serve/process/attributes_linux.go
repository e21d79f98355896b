package process

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// setAttributes makes the command the leader of a process group. A program that is tied ends with this process;
// the watchdog must not.
func setAttributes(command *exec.Cmd, tied bool) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if tied {
		command.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
}

// waitExited waits until a process has ended, without removing it: its id stays that of its group.
func waitExited(pid int) bool {
	var err error
	for {
		err = unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}
