package launch

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
)

// forwarding matches the line of kubectl with the local port.
var forwarding = regexp.MustCompile(`^Forwarding from (127\.0\.0\.1:\d+) ->`)

// Forward forwards a local port to a port of a pod, with kubectl and its flags. The function ends
// it.
//
// A person who asks about an operator has kubectl, configured as the flags say. The package portforward of client-go
// would add SPDY and websockets to the modules of each operator, for one command.
func Forward(ctx context.Context, namespace, pod, port string, flags []string) (address string, stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	arguments := append([]string{"port-forward", "--namespace=" + namespace, "--address=127.0.0.1"}, flags...)
	command := exec.CommandContext(ctx, "kubectl", append(arguments, "pod/"+pod, ":"+port)...)
	var problems bytes.Buffer
	command.Stderr = &problems
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		cancel()
		return "", nil, fmt.Errorf("kubectl, which forwards a port to the pod %s, cannot be run: %w", pod, err)
	}
	stop = func() {
		cancel()
		_ = command.Wait() // it was killed
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if found := forwarding.FindStringSubmatch(lines.Text()); found != nil {
			return found[1], stop, nil
		}
	}
	stop()
	return "", nil, fmt.Errorf("kubectl cannot forward a port to the pod %s: %s", pod, strings.TrimSpace(problems.String()))
}
