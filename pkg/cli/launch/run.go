package launch

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// Run runs a program until it ends, and returns its exit code. It forwards each signal that
// would end this process to the program once, and waits for the program to end.
func Run(program string, arguments, environment []string, out, log io.Writer) (int, error) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	command := exec.Command(program, arguments...)
	command.Stdout = out
	command.Stderr = log
	command.Env = append(os.Environ(), environment...)
	setProcessGroup(command)
	if err := command.Start(); err != nil {
		return 0, fmt.Errorf("the operator could not be started: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	for {
		select {
		case received := <-signals:
			_ = command.Process.Signal(received) // fails if the program has just ended, which Wait reports
		case err := <-ended:
			state := command.ProcessState
			switch {
			case state == nil:
				return 0, fmt.Errorf("the exit status of the operator is unknown: %w", err)
			case state.ExitCode() < 0:
				return 0, fmt.Errorf("the operator was killed: %s", state)
			}
			return state.ExitCode(), nil
		}
	}
}
