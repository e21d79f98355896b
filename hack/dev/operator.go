package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// grace is the time that the operator gets to stop before it is killed. It is longer
// than the operator's default for the last patches.
const grace = 15 * time.Second

// operator is the running child process.
type operator struct {
	command *exec.Cmd
	output  *prefixer
	done    chan struct{} // closed when the process ends
	err     error         // how the process ended; read it after done
}

// startOperator starts the operator in a separate process group: Ctrl-C in a terminal
// reaches a whole group, but the operator must get one signal, from this process.
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

// settle waits for the first output of the operator, for a limited time, because an
// operator may be silent.
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

// waitRegistered waits until the operator has said that the cluster calls its webhooks, for a limited
// time, because its log can be silent.
func (o *operator) waitRegistered(ctx context.Context, atMost time.Duration, out *console) error {
	select {
	case <-o.done:
		return o.ended()
	case <-ctx.Done():
		return ctx.Err()
	case <-o.output.registered:
	case <-time.After(atMost):
		out.say("The operator has not said within %s that the cluster calls its admission handlers. The sample object may be created without them.", atMost)
	}
	return nil
}

// ended returns the error for an operator that stopped unexpectedly.
func (o *operator) ended() error {
	if o.err != nil {
		return fmt.Errorf("the operator exited: %w", o.err)
	}
	return errors.New("the operator exited unexpectedly")
}

// stop asks the operator to exit, and kills it if it does not. It does nothing if the
// operator has exited already.
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
		out.say("The operator did not stop within %s. Killing it.", grace)
		kill(o.command.Process)
		<-o.done
	}
}
