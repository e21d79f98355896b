package launch

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// Run runs a program until it ends, and returns its exit code. The signals that end
// programs are for it: it gets every one of them, once, and we wait for what it
// makes of them.
func Run(program string, arguments []string, out, log io.Writer) (int, error) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	command := exec.Command(program, arguments...)
	command.Stdout, command.Stderr = out, log
	setProcessGroup(command)
	if err := command.Start(); err != nil {
		return 0, fmt.Errorf("the operator cannot be started: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	for {
		select {
		case received := <-signals:
			_ = command.Process.Signal(received) // it may have ended, and then that is known soon
		case err := <-ended:
			return exitCode(command.ProcessState, err)
		}
	}
}

// exitCode is that of the process, however it has ended.
func exitCode(state *os.ProcessState, err error) (int, error) {
	if state == nil {
		return 0, fmt.Errorf("it is not known how the operator has ended: %w", err)
	}
	if code := state.ExitCode(); code >= 0 {
		return code, nil
	}
	return 0, fmt.Errorf("the operator was killed: %s", state)
}
