package convergence_test

import (
	"fmt"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/convergence"
)

func TestResolutionIsReadable(t *testing.T) {
	for want, r := range map[string]convergence.Resolution{
		"restore": convergence.Restore(), "accept": convergence.Accept(),
		"accept data.a, data.b": convergence.AcceptFields("data.a").And(convergence.AcceptFields("data.b")),
	} {
		if got := fmt.Sprint(r); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
