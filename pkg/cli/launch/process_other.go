//go:build !unix

package launch

import "os/exec"

// setProcessGroup does nothing, because this system has no process groups.
func setProcessGroup(*exec.Cmd) {}
