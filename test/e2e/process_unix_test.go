//go:build unix

package e2e

import (
	"os/exec"
	"syscall"
	"testing"

	"github.com/onsi/gomega"
)

// separate runs the command in a new process group with the id of the process.
func separate(command *exec.Cmd) { command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// alive reports whether a process of the group is running.
func alive(group int) bool { return syscall.Kill(-group, 0) == nil }

// kill kills the remaining processes of the group.
func kill(group int) { _ = syscall.Kill(-group, syscall.SIGKILL) }

func TestRemainingProcessIsDetected(t *testing.T) {
	g := gomega.NewWithT(t)
	command := exec.Command("/bin/sh", "-c", "sleep 100 >/dev/null 2>&1 &")
	separate(command)
	g.Expect(command.Run()).To(gomega.Succeed())
	group := command.Process.Pid
	defer kill(group)
	g.Expect(alive(group)).To(gomega.BeTrue())
}
