package write

import (
	"testing"

	"github.com/kopf-go/kopf/pkg/model/cause"
)

const touch = "kopf.zalando.org/touch-dummy"

// Kopf leaves an annotation behind on the objects that it has touched.
func TestAnnotationThatKopfTouchesGoesWithTheNextWrite(t *testing.T) {
	f := newFixture(t, m{"annotations": m{touch: "2020-01-01T00:00:00"}})
	f.edit("a", set(int64(1), "spec", "size")) // the value is there already
	f.write(Update{})
	f.expectSent("")
	f.expect("touched", f.field("metadata", "annotations", touch), "2020-01-01T00:00:00")

	c := f.cycle(cause.Create, "a", "b")
	succeed(c, "a")
	f.write(Update{Cycle: c})
	f.expectSent("PATCH")
	f.expect("touched", f.field("metadata", "annotations", touch), nil)
}

func TestAnnotationThatKopfTouchesGoesWithAnEdit(t *testing.T) {
	f := newFixture(t, m{"annotations": m{touch: "2020-01-01T00:00:00"}})
	f.edit("a", set("x", "spec", "a"))
	f.write(Update{})
	f.expectSent("PATCH")
	f.expect("touched", f.field("metadata", "annotations", touch), nil)
}
