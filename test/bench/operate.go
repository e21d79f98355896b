package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"time"

	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// roleVariable makes the program an operator. Its value is a role as JSON.
const roleVariable = "KOPF_BENCH_ROLE"

// role is what the parent tells its child to be.
type role struct {
	Subject    string
	KubeConfig string // path of the file
	Workers    int
	Interval   time.Duration // of timers
}

// The commands of the parent, on the child's standard input, one a line. Each is
// answered by one line of JSON; the first line of all says that it is ready.
const (
	commandSample  = "sample"  // measure
	commandRest    = "rest"    // collect garbage, give memory back, and measure
	commandProfile = "profile" // begin a CPU profile; the argument is its path
	commandEnd     = "end"     // end it, and write a heap profile beside it
)

// answer is what the child says.
type answer struct {
	Sample sample
	Error  string `json:",omitempty"`
}

// operate is the child's main function: it runs an operator until the parent
// closes the pipe, which it also does by dying.
func operate(text string) int {
	operator := operator{answers: json.NewEncoder(os.Stdout)}
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
	profile *os.File
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
	config.Wrap(o.counter.wrap)
	// A real device, so that writing a line of log costs what it costs.
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	logger := zap.New(zap.WriteTo(null), zap.Level(zapcore.InfoLevel))
	klog.SetLogger(logger)
	ctx, cancel := context.WithCancelCause(context.Background())
	ready := func() { go func() { cancel(o.obey(os.Stdin)) }() }
	err = subjects[r.Subject].run(ctx, environment{config: config, logger: logger, workers: r.Workers, interval: r.Interval, tally: &o.tally, ready: ready})
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, io.EOF) {
		return errors.Join(err, cause)
	}
	return err
}

// obey answers until there are no more commands: io.EOF.
func (o *operator) obey(commands io.Reader) error {
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
	measured, err := take(&o.counter, &o.tally)
	if err != nil {
		return o.answers.Encode(answer{Error: err.Error()})
	}
	return o.answers.Encode(answer{Sample: measured})
}

func (o *operator) do(command, argument string) (err error) {
	switch command {
	case commandRest:
		runtime.GC() // finalizers and pools need a second round
		debug.FreeOSMemory()
	case commandProfile:
		if o.profile, err = os.Create(filepath.Clean(argument)); err == nil {
			err = pprof.StartCPUProfile(o.profile)
		}
	case commandEnd:
		pprof.StopCPUProfile()
		err = errors.Join(o.profile.Close(), writeHeap(o.profile.Name()))
	}
	return err
}

func writeHeap(beside string) error {
	file, err := os.Create(strings.TrimSuffix(beside, ".cpu") + ".heap")
	if err != nil {
		return err
	}
	return errors.Join(pprof.WriteHeapProfile(file), file.Close())
}
