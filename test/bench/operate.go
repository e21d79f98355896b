package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// roleVariable is the environment variable that makes the program an operator. Its
// value is a role as JSON.
const roleVariable = "KOPF_BENCH_ROLE"

// role configures the child process.
type role struct {
	Subject    string
	KubeConfig string // path of the file
	// ContentType is what the API server understands, if that is not everything.
	ContentType string
	Workers     int
	Interval    time.Duration // of timers
	Program     string        // path of a program that is the operator, if it is not this one
	User        string        // that the operator is, instead of an administrator
	Profile     string        // path of a CPU profile from the start on, or empty
	Direct      bool          // connect that program without counting its requests
	Limit       string        // GOMEMLIMIT; empty for none
}

// The commands of the parent on the child's standard input, one per line. The child
// answers each with one line of JSON. The first line reports that it is ready.
const (
	commandSample  = "sample"  // take a sample
	commandRest    = "rest"    // collect garbage, return memory, and take a sample
	commandProfile = "profile" // start a CPU profile; the argument is its path
	commandEnd     = "end"     // end the profile, and write a heap profile next to it
	commandWait    = "wait"    // let handlers wait; the argument is the duration
	commandCall    = "call"    // note the time of the next call; the argument is the name of the object
)

// answer is a line of the child.
type answer struct {
	Sample sample
	Error  string `json:",omitempty"`
}

// operate is the child's main function: it runs an operator until the pipe closes, which
// also happens when the parent dies.
func operate(text string) int {
	operator := operator{answers: json.NewEncoder(os.Stdout), meter: &ownProcess{}}
	if err := operator.run(text); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "the operator:", err)
		return 1
	}
	return 0
}

type operator struct {
	counter counter
	tally   tally
	answers *json.Encoder
	meter   meter
}

func (o *operator) run(text string) error {
	var r role
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", r.KubeConfig)
	if err != nil {
		return err
	}
	if r.Profile != "" {
		if err := o.meter.startProfile(r.Profile); err != nil {
			return err
		}
	}
	config.ContentType = r.ContentType
	config.Impersonate.UserName = r.User
	config.Wrap(o.counter.wrap)
	// A real device, so that the cost of writing log lines is included.
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	logger := zap.New(zap.WriteTo(null), zap.Level(zapcore.InfoLevel))
	klog.SetLogger(logger)
	ctx, cancel := context.WithCancelCause(context.Background())
	ready := func() { go func() { cancel(o.serveCommands(os.Stdin)) }() }
	err = subjects[r.Subject].run(ctx, environment{
		role: r, config: config, logger: logger, tally: &o.tally, ready: ready,
		measure: func(m meter) { o.meter = m },
	})
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, io.EOF) {
		return errors.Join(err, cause)
	}
	return err
}

// serveCommands answers commands until their end, and then returns io.EOF.
func (o *operator) serveCommands(commands io.Reader) error {
	if err := o.reply(commandSample, ""); err != nil {
		return err
	}
	lines := bufio.NewScanner(commands)
	for lines.Scan() {
		command, argument, _ := strings.Cut(lines.Text(), " ")
		if err := o.reply(command, argument); err != nil {
			return err
		}
	}
	return errors.Join(io.EOF, lines.Err())
}

func (o *operator) reply(command, argument string) error {
	err := o.do(command, argument)
	if err != nil {
		return o.answers.Encode(answer{Error: err.Error()})
	}
	measured := sample{Requests: o.counter.snapshot(), Tallied: o.tally.snapshot()}
	if err := o.meter.measure(&measured); err != nil {
		return o.answers.Encode(answer{Error: err.Error()})
	}
	return o.answers.Encode(answer{Sample: measured})
}

func (o *operator) do(command, argument string) (err error) {
	switch command {
	case commandRest:
		err = o.meter.collect()
	case commandProfile:
		err = o.meter.startProfile(argument)
	case commandWait:
		var wait time.Duration
		wait, err = time.ParseDuration(argument)
		o.tally.wait.Store(int64(wait))
	case commandCall:
		o.tally.expected.Store(&expectedCall{name: argument})
	case commandEnd:
		err = o.meter.endProfile()
	}
	return err
}
