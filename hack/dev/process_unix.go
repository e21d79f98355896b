//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
)

// separate gives a command a process group of its own, whose id is its own.
func separate(command *exec.Cmd) { command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// terminate asks the process to end; its children are its own business.
func terminate(process *os.Process) { _ = process.Signal(syscall.SIGTERM) }

// kill ends the whole group.
func kill(process *os.Process) { _ = syscall.Kill(-process.Pid, syscall.SIGKILL) }
