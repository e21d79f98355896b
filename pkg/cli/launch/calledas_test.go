package launch

import (
	"os"
	"runtime/debug"
	"testing"

	"github.com/spf13/cobra"
)

func TestProgramAs(t *testing.T) {
	tests := map[string]struct{ called, path, want string }{
		"a path":            {"./my-operator", "example.com/my", "./my-operator"},
		"a path with space": {"/my programs/operator", "example.com/my", "'/my programs/operator'"},
		"go run":            {"/tmp/go-build12/b001/exe/main", "example.com/my/cmd", "go run example.com/my/cmd"},
		"go run of files":   {"/tmp/go-build12/b001/exe/main", "command-line-arguments", "go run ."},
		"a cached program":  {"/home/me/.cache/go-build/8e/8e3e-d/main", "example.com/my/cmd", "go run example.com/my/cmd"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := programAs(test.called, func() (*debug.BuildInfo, bool) { return &debug.BuildInfo{Path: test.path}, true }); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// The commands of a plugin, of a group of commands, and of a program that kopf has built.
func TestCalledAs(t *testing.T) {
	tree := func(root *cobra.Command, path ...string) *cobra.Command {
		for _, name := range path {
			child := &cobra.Command{Use: name}
			root.AddCommand(child)
			root = child
		}
		return root
	}
	plugin := &cobra.Command{Use: "kubectl-kopf", Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl kopf"}}
	if got := CalledAs(tree(plugin, "explain")); got != "kubectl kopf COMMAND" {
		t.Errorf("got %s", got)
	}
	program := programAs(os.Args[0], debug.ReadBuildInfo)
	if got := CalledAs(tree(&cobra.Command{Use: "manager"}, "kopf", "explain")); got != program+" kopf COMMAND" {
		t.Errorf("got %s", got)
	}
	if got := CalledAs(tree(&cobra.Command{Use: "operator"}, "explain")); got != program+" COMMAND" {
		t.Errorf("got %s", got)
	}
	by := CalledBy(tree(&cobra.Command{Use: "kopf"}, "explain"), []string{"./handlers", "./my handlers"})
	if len(by) != 1 || by[0] != "KOPF_CALLED_AS="+program+" COMMAND ./handlers './my handlers'" {
		t.Errorf("got %s", by)
	}
	t.Setenv(CalledAsVariable, "kopf COMMAND ./handlers")
	if got := CalledAs(tree(&cobra.Command{Use: "operator"}, "explain")); got != "kopf COMMAND ./handlers" {
		t.Errorf("got %s", got)
	}
}
