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
			return exitCode(command.ProcessState, err)
		}
	}
}

// exitCode returns the exit code of the process, or an error if it was killed.
func exitCode(state *os.ProcessState, err error) (int, error) {
	if state == nil {
		return 0, fmt.Errorf("the exit status of the operator is unknown: %w", err)
	}
	if code := state.ExitCode(); code >= 0 {
		return code, nil
	}
	return 0, fmt.Errorf("the operator was killed: %s", state)
}
