//go:build unix

package e2e

import (
	"os/exec"
	"syscall"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

// separate runs the command in a new process group with the id of the process.
func separate(command *exec.Cmd) { command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// alive reports whether a process of the group is running.
func alive(group int) bool { return syscall.Kill(-group, 0) == nil }

// kill kills the remaining processes of the group.
func kill(group int) { _ = syscall.Kill(-group, syscall.SIGKILL) }

var _ = ginkgo.It("detects a process that an operator has left", func() {
	g := gomega.NewWithT(ginkgo.GinkgoTB())
	command := exec.Command("/bin/sh", "-c", "sleep 100 >/dev/null 2>&1 &")
	separate(command)
	g.Expect(command.Run()).To(gomega.Succeed())
	group := command.Process.Pid
	defer kill(group)
	g.Expect(alive(group)).To(gomega.BeTrue())
})
