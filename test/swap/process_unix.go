//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
)

// separate starts a command in a new process group, which has the id of the command.
func separate(command *exec.Cmd) { command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// terminate asks the process to exit. The process stops its own children.
func terminate(process *os.Process) { _ = process.Signal(syscall.SIGTERM) }

// kill kills the whole group.
func kill(process *os.Process) { _ = syscall.Kill(-process.Pid, syscall.SIGKILL) }
