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

// process is an operator in a process of its own, as its parent sees it.
type process struct {
	command *exec.Cmd
	input   io.WriteCloser
	output  *bufio.Scanner
}

// start starts an operator, and returns when it is ready, with the time that this
// took.
func start(ctx context.Context, r role, log io.Writer) (*process, time.Duration, error) {
	began := time.Now()
	p, err := spawn(ctx, r, log)
	if err != nil {
		return nil, 0, fmt.Errorf("the operator cannot be started: %w", err)
	}
	if _, err := p.answer(); err != nil {
		return nil, 0, errors.Join(fmt.Errorf("the operator did not get ready: %w", err), p.stop())
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

// ask sends a command and waits for what was measured after it.
func (p *process) ask(command string) (sample, error) {
	if _, err := fmt.Fprintln(p.input, command); err != nil {
		return sample{}, fmt.Errorf("the operator does not listen: %w", err)
	}
	return p.answer()
}

func (p *process) answer() (sample, error) {
	if !p.output.Scan() {
		return sample{}, errors.Join(errors.New("the operator has ended"), p.output.Err())
	}
	var a answer
	if err := json.Unmarshal(p.output.Bytes(), &a); err != nil {
		return sample{}, fmt.Errorf("the operator says %q: %w", p.output.Text(), err)
	}
	if a.Error != "" {
		return sample{}, errors.New(a.Error)
	}
	return a.Sample, nil
}

// stop stops the operator gracefully.
func (p *process) stop() error { return errors.Join(p.input.Close(), p.command.Wait()) }

const (
	quietStep  = 200 * time.Millisecond
	quietSteps = 5 // a second without work
	// quietLoad is the share of a core below which nothing is going on: watches
	// and clocks go on for ever.
	quietLoad = 0.02
)

// quiet waits until the operator has nothing to do any more: it sends nothing and
// uses next to no CPU for a while.
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
		if now.Requests != before.Requests || float64(now.CPU-before.CPU) > quietLoad*float64(quietStep) {
			calm = 0
		}
		before = now
	}
	return before, err
}
