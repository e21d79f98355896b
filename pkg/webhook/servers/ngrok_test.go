package servers

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kopf-go/kopf/pkg/settings"
)

// fakeNgrok returns the path of a program that logs what ngrok logs.
func fakeNgrok(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ngrok")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

const tunnels = `
echo "$@" "$NGROK_AUTHTOKEN" >"$0.called"
trap 'echo stopped >>"$0.called"; exit 0' INT
echo '{"lvl":"info","msg":"open config file","err":null}'
echo 'no JSON'
echo '{"lvl":"info","msg":"started tunnel","url":"https://random.ngrok.example"}'
while :; do sleep 0.05; done
`

func TestNgrok(t *testing.T) {
	g, binary := gomega.NewWithT(t), fakeNgrok(t, tunnels)
	ngrok := Ngrok{Server: Server{Port: freePort(t), Path: "random"}, Binary: binary, Token: "token", Region: "eu"}
	server := start(t, ngrok, settings.AdmissionEndpoint{})
	config := server.address(t)
	g.Expect(*config.URL).To(gomega.Equal("https://random.ngrok.example/random"))
	g.Expect(config.CABundle).To(gomega.BeEmpty())
	g.Expect(server.stop()).To(gomega.Succeed())
	called, err := os.ReadFile(binary + ".called")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(string(called)).To(gomega.Equal("http --log=stdout --log-format=json --region=eu " + ngrok.Server.withDefaults().address() + " token\nstopped\n"))
}

func TestNgrokThatExitsIsAnError(t *testing.T) {
	binary := fakeNgrok(t, `echo '{"lvl":"eror","msg":"session closed","err":"authentication failed: no account"}'; exit 1`)
	server := start(t, Ngrok{Server: Server{Port: freePort(t)}, Binary: binary}, settings.AdmissionEndpoint{})
	gomega.NewWithT(t).Eventually(server.ended).WithTimeout(patience).Should(gomega.Receive(gomega.MatchError(gomega.And(
		gomega.ContainSubstring("ngrok has exited"), gomega.ContainSubstring("authentication failed: no account"), gomega.ContainSubstring("exit status 1"),
	))))
}

func TestMissingNgrokIsAnError(t *testing.T) {
	err := AutoTunnel(Server{}, Ngrok{Binary: "no-such-ngrok"}).Serve(t.Context(), cluster(t, `{"gitVersion": "v1.37.0"}`))
	gomega.NewWithT(t).Expect(err).To(gomega.MatchError(gomega.And(
		gomega.ContainSubstring(`needs the program "no-such-ngrok"`), gomega.ContainSubstring("https://ngrok.com/download"),
	)))
}

func TestTunneledPublishesTheAddressOfTheTunnel(t *testing.T) {
	g := gomega.NewWithT(t)
	closed := false
	tunnel := settings.AdmissionServerFunc(func(ctx context.Context, endpoint settings.AdmissionEndpoint) error {
		defer func() { closed = true }()
		outside := "https://tunnel.example"
		if err := endpoint.Publish(ctx, admissionregistrationv1.WebhookClientConfig{URL: &outside}); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	})
	server := start(t, Tunneled(Server{Port: freePort(t), Insecure: true}, tunnel), settings.AdmissionEndpoint{})
	g.Expect(*server.address(t).URL).To(gomega.Equal("https://tunnel.example"))
	g.Expect(server.stop()).To(gomega.Succeed())
	g.Expect(closed).To(gomega.BeTrue())
}
