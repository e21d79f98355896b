//go:build !unix

package launch

import "os/exec"

// separate does nothing: there are no process groups here.
func separate(*exec.Cmd) {}
