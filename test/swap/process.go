package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/kopf-go/kopf/internal/guard"
)

// stopPatience is how long an operator may take to stop: more than the grace period of handlers.
const stopPatience = 40 * time.Second

// process is a running operator.
type process struct {
	command *exec.Cmd
	log     *os.File
	done    chan error // has the error of its end
}

// processes starts the operators of a seed, one at a time. They end with this program.
type processes struct {
	guard       *guard.Guard
	shell       string
	environment []string
	namespace   string
}

func newProcesses(namespace string, environment ...string) (*processes, error) {
	g, err := guard.New()
	if err != nil {
		return nil, err
	}
	shell, err := g.Wrap("/bin/sh")
	if err != nil {
		return nil, errors.Join(err, g.Release())
	}
	environment = append(os.Environ(), append(environment, "SWAP_NAMESPACE="+namespace)...)
	return &processes{guard: g, shell: shell, environment: environment, namespace: namespace}, nil
}

func (p *processes) close() error { return p.guard.Release() }

// start starts an operator, whose output is appended to a file.
func (p *processes) start(of party, number int, log string) (*process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	command := exec.Command(p.shell, "-c", "exec "+strings.ReplaceAll(of.command, "{namespace}", p.namespace)) //nolint:gosec // what the user wants
	command.Env = append(slices.Clip(p.environment), fmt.Sprintf("SWAP_PROCESS=%d", number))
	command.Stdout, command.Stderr = file, file
	separate(command)
	if err := command.Start(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	started := &process{command: command, log: file, done: make(chan error, 1)}
	go func() { started.done <- errors.Join(command.Wait(), file.Close()) }()
	return started, nil
}

// kill ends the process at once, and returns when it has ended.
func (p *process) kill() {
	kill(p.command.Process)
	<-p.done //nolint:errcheck // it is that of the signal
}

// stop asks the process to end, and returns when it has ended.
func (p *process) stop() error {
	terminate(p.command.Process)
	select {
	case err := <-p.done:
		return err
	case <-time.After(stopPatience):
		p.kill()
		return fmt.Errorf("it has not ended %s after SIGTERM", stopPatience)
	}
}
