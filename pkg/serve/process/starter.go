package process

import (
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"sync"
)

// watchdog keeps the process groups that it reads: "+ 17" begins one, "- 17" ends it. At the end of its input,
// it kills those that are left.
const watchdog = `trap '' INT TERM HUP
groups=
while read -r what group; do
	case $what in
	+) groups="$groups $group" ;;
	-)
		left=
		for each in $groups; do
			[ "$each" = "$group" ] || left="$left $each"
		done
		groups=$left
		;;
	esac
done
for each in $groups; do
	kill -KILL "-$each" # as dash, bash, and busybox understand it
done
`

// Starter starts processes that do not outlive this one.
type Starter struct {
	starts chan start

	mu    sync.Mutex
	shell *exec.Cmd
	leash io.WriteCloser
}

type start struct {
	command *exec.Cmd
	done    chan error
}

// NewStarter returns a starter. Its error says that there is no watchdog; the starter can be used nevertheless.
func NewStarter() (*Starter, error) {
	s := &Starter{starts: make(chan start)}
	// Linux kills a process with the thread that has started it, and Go ends threads of goroutines that end
	// locked. So one thread starts all processes, and lives until Close.
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for next := range s.starts {
			next.done <- next.command.Start()
		}
	}()
	shell := exec.Command("/bin/sh", "-c", watchdog, "kopf-watchdog")
	shell.Env = []string{}
	setAttributes(shell, false)
	leash, err := shell.StdinPipe()
	if err == nil {
		err = shell.Start()
	}
	if err != nil {
		return s, fmt.Errorf("the watchdog for processes cannot start: if the operator is killed, what programs have started can outlive it: %w", err)
	}
	s.shell = shell
	s.leash = leash
	return s, nil
}

// Close ends the watchdog. All processes must have ended.
func (s *Starter) Close() error {
	close(s.starts)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shell == nil {
		return nil
	}
	_ = s.leash.Close() // the end of the input is all that it waits for
	err := s.shell.Wait()
	s.shell = nil
	return err
}

// start starts a command in its own process group.
func (s *Starter) start(command *exec.Cmd) error {
	setAttributes(command, true)
	next := start{command, make(chan error, 1)}
	s.starts <- next
	if err := <-next.done; err != nil {
		return err
	}
	s.tell("+", command.Process.Pid)
	return nil
}

// tell tells the watchdog about a group.
func (s *Starter) tell(what string, group int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shell != nil {
		_, _ = fmt.Fprintf(s.leash, "%s %d\n", what, group) // without a watchdog, there is nothing to tell
	}
}
