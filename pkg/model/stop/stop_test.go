package stop_test

import (
	"testing"

	"github.com/kopf-go/kopf/pkg/model/stop"
)

func TestStopReasonsAreASet(t *testing.T) {
	tests := map[string]struct {
		reason stop.Reason
		want   string
	}{
		"none":    {0, ""},
		"one":     {stop.Paused, "paused"},
		"several": {stop.Canceled | stop.Deleted, "deleted|canceled"},
		"all":     {0x7f, "deleted|mismatch|paused|exiting|signaled|canceled|abandoned"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.reason.String(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	both := stop.Deleted | stop.Signaled
	if !both.Has(stop.Deleted) || !both.Has(both) || both.Has(stop.Deleted|stop.Exiting) || both.Has(stop.Paused) {
		t.Errorf("%s contains another reason", both)
	}
}
