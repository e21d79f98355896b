package worker

import (
	"fmt"
	"io"
	"os"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"

	"github.com/kopf-go/kopf/pkg/serve/process"
)

// The lines of standard error that a worker can write.
const (
	linesPerSecond = 100
	burstOfLines   = 2000
)

// FromProgram returns the function that starts a worker as a program. Its standard error becomes lines of the log.
func FromProgram(starter *process.Starter, program process.Program, logger logr.Logger) func() (*Pipes, error) {
	return func() (*Pipes, error) {
		theirInput, in, err := os.Pipe()
		if err != nil {
			return nil, fmt.Errorf("a pipe cannot be made: %w", err)
		}
		out, theirOutput, err := os.Pipe()
		if err != nil {
			return nil, closeAll(err, theirInput, in)
		}
		limiter := rate.NewLimiter(linesPerSecond, burstOfLines)
		lines := &process.Lines{Line: func(text string) {
			if limiter.Allow() {
				logger.Info(text)
			}
		}}
		running, err := starter.Start(program, theirInput, theirOutput, lines)
		if err != nil {
			return nil, closeAll(err, theirInput, in, out, theirOutput)
		}
		// The process has its own copies. Without these, the output ends with the process.
		_ = theirInput.Close()
		_ = theirOutput.Close()
		return &Pipes{
			In: in, Out: out, Kill: running.Kill,
			Stop: func() { // the end of the input is the end of the work; SIGTERM says so to those that do not read
				_ = in.Close()
				running.Stop()
			},
			Wait: func() error {
				err := running.Wait()
				lines.Close()
				_ = in.Close()
				if last := lines.Last(); err != nil && last != "" { // the reason, such as that of an exception
					err = fmt.Errorf("%w: %s", err, last)
				}
				return err
			},
		}, nil
	}
}

// closeAll closes files, and returns why.
func closeAll(err error, files ...io.Closer) error {
	for _, file := range files {
		_ = file.Close()
	}
	return fmt.Errorf("the worker cannot start: %w", err)
}
