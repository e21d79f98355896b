// Package guard prevents processes from outliving the process that started them.
//
// A test timeout, a panic in a goroutine, or kill -9 ends a process without cleanup,
// and a leftover control plane uses half a gigabyte of memory until the next reboot.
// Therefore a watchdog, a shell that blocks on a pipe which only this process holds
// open, stops every guarded process and removes the working directory as soon as the
// pipe closes, for whatever reason.
//
// Invariant: the directory exists as long as there may be a process to stop. Release
// removes it, so that the watchdog then does nothing.
package guard

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// watchdog waits for the end of its input. It gives the process groups ten seconds to
// stop, because a control plane needs some time to close its files.
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

// Guard is a working directory with a watchdog for the processes that are started
// through it.
type Guard struct {
	dir   string
	shell *exec.Cmd
	leash io.Closer
}

// New starts a watchdog with a new working directory.
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
		return nil, fmt.Errorf("starting the watchdog for child processes: %w", err)
	}
	return &Guard{dir: dir, shell: shell, leash: leash}, nil
}

// Dir returns the working directory. It is removed with the guard.
func (g *Guard) Dir() string { return g.dir }

// Wrap returns the path of a script to start instead of the binary. The script writes
// its process id to a file and then executes the binary in its place, so that
// arguments, signals, and the exit status are those of the binary. Use one script for
// one process at a time, which should be the leader of a process group.
func (g *Guard) Wrap(binary string) (string, error) {
	name := filepath.Join(g.dir, filepath.Base(binary))
	script := fmt.Sprintf("#!/bin/sh\necho $$ >%s\nexec %s \"$@\"\n", quote(name+".pid"), quote(binary))
	return name + ".sh", os.WriteFile(name+".sh", []byte(script), 0o700)
}

// Release stops the watchdog. Call it when the processes have stopped.
func (g *Guard) Release() error {
	if err := os.RemoveAll(g.dir); err != nil {
		return err
	}
	if err := g.leash.Close(); err != nil {
		return err
	}
	return g.shell.Wait()
}

// quote returns the text as one word for a shell.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
