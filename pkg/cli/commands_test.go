package cli

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/pkg/settings"
)

// A program that sets its name must get its own lease, and not the default one.
func TestCommandsLeaveTheLeaseToTheNameOfTheOperator(t *testing.T) {
	for _, arguments := range [][]string{{"explain", "kopfexample/one"}, {"shards"}, {"release", "--all"}} {
		var got settings.Settings
		for _, command := range Commands(func(s settings.Settings) (Program, error) {
			got = s
			return Program{}, errors.New("enough")
		}) {
			if command.Name() == arguments[0] {
				command.SetArgs(arguments[1:])
				command.SetErr(io.Discard)
				if err := command.ExecuteContext(t.Context()); err == nil || err.Error() != "enough" {
					t.Errorf("got %v", err)
				}
			}
		}
		if got.Name = "web.example.com"; got.WithDefaults().Replicas.LeaseName != got.Name {
			t.Errorf("%s: the lease is %q", arguments[0], got.WithDefaults().Replicas.LeaseName)
		}
	}
}

func TestProgressOfAReleaseInAPipe(t *testing.T) {
	var out strings.Builder
	flags := &releaseFlags{}
	end := flags.showProgress(&out)
	flags.Scanned("things", 2)
	flags.Progress("things", 1, 2)
	flags.Progress("things", 2, 2)
	end()
	if want := "things: 1 of 2 objects\nthings: 2 of 2 objects\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
