package commands

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/internal/pty"
)

// onTerminal runs a command on a terminal with a width, and returns what it has written.
func onTerminal(t *testing.T, width uint16, variables []string, program string, arguments ...string) string {
	t.Helper()
	g := gomega.NewWithT(t)
	of, out, err := pty.Open(width)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	defer func() { _ = of.Close() }()

	command := exec.CommandContext(t.Context(), program, arguments...)
	command.Env = append(append(os.Environ(), "TERM=xterm", "NO_COLOR="), variables...)
	command.Stdout, command.Stderr = out, out
	g.Expect(command.Start()).To(gomega.Succeed())
	g.Expect(out.Close()).To(gomega.Succeed()) // the reader ends with the last writer
	var written bytes.Buffer
	_, err = io.Copy(&written, of)
	g.Expect(err).To(gomega.Or(gomega.BeNil(), gomega.MatchError(syscall.EIO))) // the end of a terminal
	g.Expect(command.Wait()).To(gomega.Succeed(), written.String())
	return strings.ReplaceAll(written.String(), "\r\n", "\n")
}

// color is an escape sequence that selects a color.
var color = regexp.MustCompile("\x1b\\[[0-9]*m")

// A terminal gets lines of its width, and colors unless NO_COLOR is set. A pipe gets neither.
func TestAnswersOnATerminal(t *testing.T) {
	g, namespace, example := gomega.NewWithT(t), cluster.Namespace(t), build(t, ".", "examples/01-minimal")
	variables := []string{"KUBECONFIG=" + kubeconfig(t)}
	created(t, namespace, "one")
	about := []string{"explain", "kopfexample/one", "-n", namespace}
	piped := ask(t, variables, example, about...)
	g.Expect(piped).NotTo(gomega.MatchRegexp(color.String()))
	words := strings.Fields(piped)

	const narrow = 50
	colored := onTerminal(t, narrow, variables, example, about...)
	g.Expect(colored).To(gomega.ContainSubstring("\x1b[32m●\x1b[0m createFn"))
	plain := onTerminal(t, narrow, append(variables, "NO_COLOR=1"), example, about...)
	g.Expect(plain).NotTo(gomega.MatchRegexp(color.String()))
	g.Expect(plain).To(gomega.ContainSubstring("  - createFn (create)"))
	g.Expect(strings.Fields(plain)).To(gomega.Equal(words), "the same answer in other lines")
	for line := range strings.Lines(color.ReplaceAllString(colored, "") + plain) {
		isText := strings.Count(strings.TrimSpace(line), " ") > 1 // a long name is not broken
		g.Expect(isText && utf8.RuneCountInString(line) > narrow+1 && !strings.Contains(line, namespace)).To(gomega.BeFalse(), line)
	}
	g.Expect(onTerminal(t, narrow, append(variables, "TERM=dumb"), example, about...)).To(gomega.Equal(plain))
}
