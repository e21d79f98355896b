// Package guard keeps processes from outliving the one that started them.
//
// A test that runs into its timeout, a panic in a goroutine or a kill -9 ends a
// process without any clean-up, and a control plane left behind eats half a
// gigabyte until the next reboot. So a watchdog, a shell blocked on a pipe that
// only this process holds open, stops every guarded process and removes the
// working directory when the pipe closes, whatever closed it.
//
// Invariant: the directory exists for as long as something may have to be
// stopped. Release removes it, so the watchdog of an orderly end does nothing.
package guard

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// watchdog waits for the end of its input. The process groups get ten seconds
// to stop, as a control plane needs some to close its files.
const watchdog = `trap '' INT TERM HUP
dir=$1
signal() { # sends a signal to every guarded process group, and fails if there is none
	reached=1
	for file in "$dir"/*.pid; do
		[ -e "$file" ] && read -r pid <"$file" || continue
		kill "$1" -- "-$pid" || kill "$1" "$pid" || continue
		reached=0
	done
	return $reached
}
cat >/dev/null
[ -d "$dir" ] || exit 0
signal -TERM
for second in 1 2 3 4 5 6 7 8 9 10; do
	signal -0 || break
	sleep 1
done
signal -KILL
rm -rf "$dir"
`

// Guard is a working directory and the watchdog over the processes started
// through it.
type Guard struct {
	dir   string
	shell *exec.Cmd
	leash io.Closer
}

// New starts a watchdog with a fresh working directory.
func New() (*Guard, error) {
	dir, err := os.MkdirTemp("", "kopf-go-")
	if err != nil {
		return nil, err
	}
	shell := exec.Command("/bin/sh", "-c", watchdog, "watchdog", dir)
	leash, err := shell.StdinPipe()
	if err == nil {
		err = shell.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("starting the watchdog over child processes: %w", err)
	}
	return &Guard{dir: dir, shell: shell, leash: leash}, nil
}

// Dir is the working directory. It vanishes with the guard.
func (g *Guard) Dir() string { return g.dir }

// Wrap returns the path of a script to start instead of the binary. The script
// notes its process id and becomes the binary, so arguments, signals and exit
// status are the binary's. One script serves one process at a time, which should
// be the leader of a process group.
func (g *Guard) Wrap(binary string) (string, error) {
	name := filepath.Join(g.dir, filepath.Base(binary))
	script := fmt.Sprintf("#!/bin/sh\necho $$ >%s\nexec %s \"$@\"\n", quote(name+".pid"), quote(binary))
	return name + ".sh", os.WriteFile(name+".sh", []byte(script), 0o700)
}

// Release ends the watch: the caller has stopped its processes.
func (g *Guard) Release() error {
	if err := os.RemoveAll(g.dir); err != nil {
		return err
	}
	if err := g.leash.Close(); err != nil {
		return err
	}
	return g.shell.Wait()
}

// quote makes one word of the text for a shell.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
