//go:build !unix

package launch

import "os/exec"

// setProcessGroup does nothing: there are no process groups here.
func setProcessGroup(*exec.Cmd) {}
