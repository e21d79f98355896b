//go:build !unix

package main

import (
	"os"
	"os/exec"
)

// Without process groups and SIGTERM, a child process can only be killed.

func separate(*exec.Cmd) {}

func terminate(process *os.Process) { _ = process.Kill() }

func kill(process *os.Process) { _ = process.Kill() }
