package write

import (
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
)

// await adds an edit whose author decides what follows a refusal.
func (f *fixture) await(fill func(*patch.Patch)) *[]error {
	p := &patch.Patch{}
	fill(p)
	refusals := &[]error{}
	f.state.Add(call.Edit{
		ID: "daemon", Patch: p, Done: func() { f.done["daemon"]++ }, Refused: func(why error) { *refusals = append(*refusals, why) },
	})
	return refusals
}

// A refusal goes to the author of an edit, is not reported, and holds up no other edit.
func TestRefusalGoesToTheAuthor(t *testing.T) {
	failure := errors.New("it cannot be computed")
	tests := map[string]struct {
		fill  func(*patch.Patch)
		fails bool // the write, which is repeated
		is    func(error) bool
	}{
		"of the content":    {set("x", "spec", "bad"), false, apierrors.IsInvalid},
		"for a permission":  {set("x", "spec", "secret"), true, apierrors.IsForbidden},
		"of a function":     {func(p *patch.Patch) { p.Apply(func(*unstructured.Unstructured) error { return failure }) }, false, func(err error) bool { return errors.Is(err, failure) }},
		"of the status":     {set("x", "status", "bad"), false, apierrors.IsInvalid},
		"of an unknown one": {set("x"), false, func(err error) bool { return err != nil }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, m{})
			f.rejects = func(of m) error {
				for _, rule := range []func(m) error{
					forbidding(object.Path{"spec", "secret"}), rejecting(http.StatusUnprocessableEntity, "spec", "bad"), rejecting(http.StatusUnprocessableEntity, "status", "bad"),
				} {
					if err := rule(of); err != nil {
						return err
					}
				}
				return nil
			}
			c := f.finished(cause.Create, "good")
			f.edit("good", set("x", "spec", "good"))
			refusals := f.await(test.fill)
			_, err := f.Write(t.Context(), Update{Cycle: c})
			if (err != nil) != test.fails {
				t.Errorf("got %v", err)
			}
			if len(*refusals) != 1 || !test.is((*refusals)[0]) || f.done["daemon"] != 1 {
				t.Errorf("got %v, ended %d times", *refusals, f.done["daemon"])
			}
			if err != nil {
				f.refresh(f.cached())
				if _, err := f.Flush(t.Context()); err != nil {
					t.Error(err)
				}
			}
			f.expect("good", f.field("spec", "good"), "x")
			f.expect("events", f.events, []string{})
			if f.state.HasEdits() || f.state.HasPending() || len(*refusals) != 1 {
				t.Error("something is left")
			}
		})
	}
}

func TestAuthorsAreToldThatTheObjectIsGone(t *testing.T) {
	tests := map[string]func(f *fixture){
		"gone":        func(f *fixture) { f.state.MarkGone() },
		"replaced":    func(f *fixture) { f.state.Reset("u-2") },
		"not watched": func(f *fixture) { f.state.Drop(handler.ErrGone) },
	}
	for name, end := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, m{})
			refusals := f.await(set("x", "spec", "field"))
			end(f)
			if len(*refusals) != 1 || !errors.Is((*refusals)[0], handler.ErrGone) || f.done["daemon"] != 1 {
				t.Errorf("got %v, ended %d times", *refusals, f.done["daemon"])
			}
		})
	}
	f := newFixture(t, m{})
	f.state.MarkGone()
	if refusals := f.await(set("x", "spec", "field")); len(*refusals) != 1 {
		t.Error("an edit of an object that is gone is accepted")
	}
}

// An edit that is written is not refused.
func TestAuthorsAreToldThatTheirEditIsWritten(t *testing.T) {
	f := newFixture(t, m{})
	refusals := f.await(set("x", "status", "field"))
	f.write(Update{})
	if len(*refusals) != 0 || f.done["daemon"] != 1 {
		t.Errorf("got %v, ended %d times", *refusals, f.done["daemon"])
	}
}

// The status has become a subresource, so it is refused when the rest of the edits is stored. It is one write, so its
// refusal cannot be told to some of the authors alone.
func TestRefusalOfADroppedStatusGoesToItsAuthors(t *testing.T) {
	for name, handler := range map[string]bool{"of authors who decide": false, "of a handler, too": true} {
		t.Run(name, func(t *testing.T) {
			f, _ := redefined(t, true)
			f.rejects = rejecting(http.StatusUnprocessableEntity, "status", "bad")
			refusals := f.await(func(p *patch.Patch) { set("x", "status", "bad")(p); set("x", "spec", "good")(p) })
			if handler {
				f.edit("fn", set("x", "status", "good"))
			}
			f.write(Update{})
			f.expect("refusals", len(*refusals), map[bool]int{false: 1}[handler])
			f.expect("finished", f.done["daemon"], 1)
			f.expect("good", f.field("spec", "good"), "x")
		})
	}
}
