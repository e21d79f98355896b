package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// grace is how long the operator may take to stop before it is killed: more than
// its own default for the last patches.
const grace = 15 * time.Second

// operator is the running child process.
type operator struct {
	command *exec.Cmd
	output  *prefixer
	done    chan struct{} // closed when the process has ended
	err     error         // how; to be read after done
}

// startOperator starts the operator in a process group of its own: Ctrl-C in a
// terminal reaches a whole group, and the operator is to get one signal, from us.
func startOperator(binary string, arguments []string, target *target, output *prefixer) (*operator, error) {
	command := exec.Command(binary, arguments...)
	command.Stdout, command.Stderr = output, output
	command.Env = os.Environ()
	if target.kubeconfig != "" {
		command.Env = append(command.Env, "KUBECONFIG="+target.kubeconfig)
	}
	command.WaitDelay = time.Second
	separate(command)
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting the operator: %w", err)
	}
	started := &operator{command: command, output: output, done: make(chan struct{})}
	go func() {
		defer close(started.done)
		started.err = command.Wait()
		output.flush()
	}()
	return started, nil
}

// settle waits for the first words of the operator, but not long: an operator may
// be silent.
func (o *operator) settle(ctx context.Context, atMost time.Duration) error {
	select {
	case <-o.done:
		return o.ended()
	case <-ctx.Done():
		return ctx.Err()
	case <-o.output.spoken:
	case <-time.After(atMost):
	}
	return nil
}

// ended is the error of an operator that was expected to run on.
func (o *operator) ended() error {
	if o.err != nil {
		return fmt.Errorf("the operator has ended: %w", o.err)
	}
	return errors.New("the operator has ended by itself")
}

// stop asks the operator to end, and kills it if it does not. Nothing happens to
// one that has ended.
func (o *operator) stop(out *console) {
	select {
	case <-o.done:
		return
	default:
	}
	out.say("Stopping the operator.")
	terminate(o.command.Process)
	select {
	case <-o.done:
	case <-time.After(grace):
		out.say("It has not stopped within %s, and is killed.", grace)
		kill(o.command.Process)
		<-o.done
	}
}
