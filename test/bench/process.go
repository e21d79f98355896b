package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// process is the child process of an operator.
type process struct {
	command *exec.Cmd
	input   io.WriteCloser
	output  *bufio.Scanner
}

// start starts an operator. It returns when the operator is ready, with the time that
// this took.
func start(ctx context.Context, r role, log io.Writer) (*process, time.Duration, error) {
	began := time.Now()
	p, err := spawn(ctx, r, log)
	if err != nil {
		return nil, 0, fmt.Errorf("starting the operator: %w", err)
	}
	if _, err := p.answer(); err != nil {
		return nil, 0, errors.Join(fmt.Errorf("the operator did not become ready: %w", err), p.stop())
	}
	return p, time.Since(began), nil
}

func spawn(ctx context.Context, r role, log io.Writer) (*process, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	executable, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, executable)
	command.Env = append(os.Environ(), roleVariable+"="+string(text))
	if r.Limit != "" {
		command.Env = append(command.Env, "GOMEMLIMIT="+r.Limit)
	}
	command.Stderr = log
	input, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &process{command: command, input: input, output: bufio.NewScanner(output)}, command.Start()
}

// ask sends a command and returns the sample that follows.
func (p *process) ask(command string) (sample, error) {
	if _, err := fmt.Fprintln(p.input, command); err != nil {
		return sample{}, fmt.Errorf("sending a command to the operator: %w", err)
	}
	return p.answer()
}

func (p *process) answer() (sample, error) {
	if !p.output.Scan() {
		return sample{}, errors.Join(errors.New("the operator exited"), p.output.Err())
	}
	var a answer
	if err := json.Unmarshal(p.output.Bytes(), &a); err != nil {
		return sample{}, fmt.Errorf("the operator printed %q: %w", p.output.Text(), err)
	}
	if a.Error != "" {
		return sample{}, errors.New(a.Error)
	}
	return a.Sample, nil
}

// stop stops the operator gracefully.
func (p *process) stop() error { return errors.Join(p.input.Close(), p.command.Wait()) }

// kill stops the operator as the system does when it is out of memory.
func (p *process) kill() error {
	if err := p.command.Process.Kill(); err != nil {
		return err
	}
	_ = p.command.Wait() // the error says that it was killed
	return nil
}

const (
	quietStep  = 200 * time.Millisecond
	quietSteps = 5 // a second without work
	// quietLoad is the share of a core below which the operator counts as idle:
	// watches and timers never stop.
	quietLoad = 0.02
)

// quiet waits until the operator is idle: it sends no requests and uses almost no CPU
// for a while.
func (p *process) quiet(ctx context.Context) (sample, error) {
	before, err := p.ask(commandSample)
	for calm := 0; err == nil && calm < quietSteps; {
		select {
		case <-ctx.Done():
			return before, context.Cause(ctx)
		case <-time.After(quietStep):
		}
		var now sample
		if now, err = p.ask(commandSample); err != nil {
			break
		}
		calm++
		if now.Requests.withoutLeases() != before.Requests.withoutLeases() || float64(now.CPU-before.CPU) > quietLoad*float64(quietStep) {
			calm = 0
		}
		before = now
	}
	return before, err
}
