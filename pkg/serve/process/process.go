package process

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Program is what is executed.
type Program struct {
	Command []string
	Dir     string
	// Environment has all variables of the program: NAME=value.
	Environment []string
	// StopTimeout is how long the program may take to end after it was asked to.
	StopTimeout time.Duration
}

// Running is a program that runs. Wait must be called once.
type Running struct {
	starter *Starter
	command *exec.Cmd
	stop    time.Duration

	mu       sync.Mutex
	ended    bool
	stopping *time.Timer
}

// command returns the command of a program. A relative path with a slash begins in the folder of the program.
func (p Program) command() *exec.Cmd {
	command := exec.Command(p.Command[0], p.Command[1:]...)
	command.Dir = p.Dir
	command.Env = p.Environment
	// The group of the program is killed at its end, so its pipes close soon.
	command.WaitDelay = 5 * time.Second
	return command
}

// Start starts the program.
func (s *Starter) Start(p Program, in io.Reader, out, log io.Writer) (*Running, error) {
	command := p.command()
	command.Stdin = in
	command.Stdout = out
	command.Stderr = log
	return s.run(p, command)
}

func (s *Starter) run(p Program, command *exec.Cmd) (*Running, error) {
	if err := s.start(command); err != nil {
		return nil, fmt.Errorf("%s cannot start: %w", strings.Join(p.Command, " "), err)
	}
	return &Running{starter: s, command: command, stop: p.StopTimeout}, nil
}

// Wait waits for the end of the program, and of its group.
func (r *Running) Wait() error {
	leader := r.command.Process.Pid
	var err error
	if waitExited(leader) {
		r.end(leader)
		err = r.command.Wait()
	} else {
		err = r.command.Wait()
		r.end(leader)
	}
	r.starter.tell("-", leader)
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // something of the program has left its group, and holds the pipes
	}
	return err
}

// end kills what the program has left in the background.
func (r *Running) end(leader int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	if r.stopping != nil {
		r.stopping.Stop()
	}
	signalGroup(leader, true)
}

// Stop asks the program to end, and kills it if it does not.
func (r *Running) Stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || r.stopping != nil {
		return
	}
	r.stopping = time.AfterFunc(r.stop, r.Kill)
	signalGroup(r.command.Process.Pid, false)
}

// Kill kills the program and its group.
func (r *Running) Kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		signalGroup(r.command.Process.Pid, true)
	}
}
