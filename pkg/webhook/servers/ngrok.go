package servers

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

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/kopf-go/kopf/pkg/settings"
)

// Ngrok lets the API servers call through the internet, by the program ngrok, which
// has to be installed. Who knows the address can ask the handlers: it is good for
// development, and handlers without side effects. What goes on locally is plain
// HTTP; the address outside has a certificate that clusters trust.
//
// Specification: the class WebhookNgrokTunnel.
type Ngrok struct {
	// Server is the local end. It is served by plain HTTP; Host, Service and the
	// certificates are of no use here.
	Server Server
	// Binary is the program. Default: "ngrok" in the PATH.
	Binary string
	// Token is that of a subscription. Default: what ngrok is configured with.
	Token string
	// Region is where ngrok's end of the tunnel is. Default: what ngrok chooses.
	Region string
}

// stopTimeout is how long ngrok may take to stop.
const stopTimeout = 5 * time.Second

// Serve serves until the context is done. The end of ngrok is an error.
func (n Ngrok) Serve(ctx context.Context, endpoint settings.AdmissionEndpoint) error {
	binary, err := n.findBinary()
	if err != nil {
		return err
	}
	local := n.Server
	local.Insecure, local.Host, local.Service = true, "", nil
	forward := func(ctx context.Context, endpoint settings.AdmissionEndpoint) error {
		return n.forward(ctx, binary, local.withDefaults(), endpoint)
	}
	return Tunneled(local, settings.AdmissionServerFunc(forward)).Serve(ctx, endpoint)
}

func (n Ngrok) findBinary() (string, error) {
	name := n.Binary
	if name == "" {
		name = "ngrok"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("the tunnel for admissions needs the program %q: install it from https://ngrok.com/download, "+
			"or choose a server that the cluster can call directly: %w", name, err)
	}
	return path, nil
}

// forward runs ngrok, and publishes what it says about where it listens.
func (n Ngrok) forward(ctx context.Context, binary string, local Server, endpoint settings.AdmissionEndpoint) error {
	command := n.command(ctx, binary, local)
	output, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("starting ngrok: %w", err)
	}
	failure := followLog(output, func(url string) error {
		return endpoint.Publish(ctx, admissionregistrationv1.WebhookClientConfig{URL: ptr.To(url + withLeadingSlash(local.Path))})
	})
	err = command.Wait()
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was asked to end
	}
	return fmt.Errorf("ngrok has ended, and with it the tunnel for admissions: %w", errors.Join(failure, err))
}

func (n Ngrok) command(ctx context.Context, binary string, local Server) *exec.Cmd {
	arguments := []string{"http", "--log=stdout", "--log-format=json"}
	if n.Region != "" {
		arguments = append(arguments, "--region="+n.Region)
	}
	command := exec.CommandContext(ctx, binary, append(arguments, local.address())...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = stopTimeout
	if n.Token != "" { // arguments are seen by everybody on the machine
		command.Env = append(os.Environ(), "NGROK_AUTHTOKEN="+n.Token)
	}
	return command
}

// followLog follows the log until its end. The error is the last that ngrok told.
func followLog(log io.Reader, started func(url string) error) error {
	var failure error
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		var line struct{ Msg, URL, Err string }
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue
		}
		if line.Msg == "started tunnel" && line.URL != "" {
			failure = errors.Join(failure, started(line.URL))
		}
		if line.Err != "" && line.Err != "<nil>" {
			failure = errors.New(line.Err)
		}
	}
	_, _ = io.Copy(io.Discard, log) // a line too long must not make ngrok wait
	return failure
}
