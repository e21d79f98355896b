package plural

import "testing"

func TestOf(t *testing.T) {
	for n, want := range map[int]string{0: "0 objects are", 1: "1 object is", 2: "2 objects are", 101: "101 objects are"} {
		if got := Of(n, "object is", "objects are"); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
