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

	"github.com/kopf-go/kopf/pkg/settings"
)

// Ngrok is a tunnel through the internet, by the program ngrok, which must be
// installed. Everyone who knows its address can call the handlers, so use it for
// development and for handlers without side effects. The local end serves plain HTTP;
// the public address has a certificate that clusters trust.
//
// Specification: the class WebhookNgrokTunnel.
type Ngrok struct {
	// Server is the local end of the tunnel. Host, Service and the certificates have
	// no effect.
	Server Server
	// Binary is the program. Default: "ngrok" in the PATH.
	Binary string
	// Token is the authentication token of an account. Default: the configuration of
	// ngrok.
	Token string
	// Region is the location of ngrok's end of the tunnel. Default: ngrok's choice.
	Region string
}

// stopTimeout is how long ngrok may take to stop.
const stopTimeout = 5 * time.Second

// Serve serves until the context is done. It returns an error if ngrok exits.
func (n Ngrok) Serve(ctx context.Context, endpoint settings.AdmissionEndpoint) error {
	name := n.Binary
	if name == "" {
		name = "ngrok"
	}
	binary, err := exec.LookPath(name)
	if err != nil {
		return fmt.Errorf("the tunnel for admission reviews needs the program %q: install it from https://ngrok.com/download, "+
			"or choose a server that the cluster can call directly: %w", name, err)
	}
	local := n.Server
	local.Insecure = true
	local.Host = ""
	local.Service = nil
	forward := func(ctx context.Context, endpoint settings.AdmissionEndpoint) error {
		return n.forward(ctx, binary, local.withDefaults(), endpoint)
	}
	return Tunneled(local, settings.AdmissionServerFunc(forward)).Serve(ctx, endpoint)
}

// forward runs ngrok and publishes the address that ngrok logs.
func (n Ngrok) forward(ctx context.Context, binary string, local Server, endpoint settings.AdmissionEndpoint) error {
	arguments := []string{"http", "--log=stdout", "--log-format=json"}
	if n.Region != "" {
		arguments = append(arguments, "--region="+n.Region)
	}
	command := exec.CommandContext(ctx, binary, append(arguments, local.address())...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = stopTimeout
	if n.Token != "" { // every user of the machine can see arguments
		command.Env = append(os.Environ(), "NGROK_AUTHTOKEN="+n.Token)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("starting ngrok: %w", err)
	}
	failure := followLog(output, func(url string) error {
		return endpoint.Publish(ctx, admissionregistrationv1.WebhookClientConfig{URL: new(url + withLeadingSlash(local.Path))})
	})
	err = command.Wait()
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the context is done
	}
	return fmt.Errorf("ngrok has exited and closed the tunnel for admission reviews: %w", errors.Join(failure, err))
}

// followLog reads the log until its end. It returns the last error that ngrok logs.
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
	_, _ = io.Copy(io.Discard, log) // a line that is too long must not block ngrok
	return failure
}
