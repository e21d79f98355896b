package release

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/pkg/inspect"
)

func TestReportsAreInGoodEnglish(t *testing.T) {
	one := ResourceReport{Resource: "things", Objects: 4, Released: 1, Others: 1, Finalizers: 1, Abandoned: 1, Orphans: 1, HeldCount: 1, Held: []string{"a"}, Failed: 1, Errors: []string{"b: no"}}
	two := ResourceReport{Resource: "others", Objects: 9, Released: 2, Others: 3, Finalizers: 0, Abandoned: 2, Orphans: 2, HeldCount: 2, Held: []string{"a", "b"}, Failed: 2, Errors: []string{"c: no"}}
	const orphans = " children in other namespaces, which stay when the object is deleted: delete them by the label of handlers of Ensure\n"
	const held = " for the deletion handlers; let the operator finish that, or clean up and release with --abandon-deletions\n"
	want := `things: 1 of 4 objects %s released, 1 from the finalizer
  1 other object has nothing of this operator, and is left as it is
  1 of them %s being deleted, and nothing cleans up for it
  1 of them has` + orphans + `  ! skipped: 1 object is being deleted, and waits` + held + `  - a
  ! 1 object could not be written, and is not released
  - b: no
others: 2 of 9 objects %s released, 0 from the finalizer
  3 other objects have nothing of this operator, and are left as they are
  2 of them %s being deleted, and nothing cleans up for them
  2 of them have` + orphans + `  ! skipped: 2 objects are being deleted, and wait` + held + `  - a
  - b
  ! 2 objects could not be written, and are not released
  - c: no

This is left
  - The lease.
`
	r := Report{Resources: []ResourceReport{one, two}, Left: []string{"The lease."}}
	if got := r.Text(inspect.Style{}); got != fmt.Sprintf(want, "was", "was", "were", "were") {
		t.Errorf("got:\n%s", got)
	}
	r.Refused = []string{"nothing is known.", "others have progress."}
	if got := r.Text(inspect.Style{}); !strings.Contains(got, "\n! The release would be refused: nothing is known.\n! The release would be refused: others have progress.\n\nThis is left\n") {
		t.Errorf("got:\n%s", got)
	}
	r.DryRun, r.Refused = true, nil
	if got := r.Text(inspect.Style{}); got != fmt.Sprintf(want, "would be", "is", "would be", "are") {
		t.Errorf("got:\n%s", got)
	}
	if r.Held() != 3 || r.Failed() != 3 {
		t.Errorf("%d are held, and %d have failed", r.Held(), r.Failed())
	}
	if got := (&Report{}).Text(inspect.Style{}); got != "The cluster serves no resources on which this program stores something.\n" {
		t.Errorf("got %q", got)
	}
}

// A repetition finds nothing: that is no failure.
func TestReportsSayThatNothingIsLeftToRelease(t *testing.T) {
	r := Report{Resources: []ResourceReport{
		{Resource: "things", Objects: 10},
		{Resource: "others", Objects: 1},
		{Resource: "held", Objects: 1, HeldCount: 1},
	}}
	const want = "things: 10 objects have nothing of this operator\nothers: 1 object has nothing of this operator\nheld: 0 of 1 object were released, 0 from the finalizer\n"
	for _, r.DryRun = range []bool{false, true} {
		if got := r.Text(inspect.Style{}); !strings.HasPrefix(strings.Replace(got, "would be", "were", 1), want) {
			t.Errorf("got:\n%s", got)
		}
	}
}

// The finalizers of other controllers are named, also on objects without anything of the operator.
func TestReportsWarnOfFinalizersOfOthers(t *testing.T) {
	r, _ := newReleaser(t)
	r.CommandLine = inspect.CommandLine{Flags: []string{"--context", "a b"}}
	p := ResourceReport{Resource: "things.example.com", Objects: 3}
	p.add("a", &traces{others: []string{"z.example.com/z", "a.example.com/a"}, deleting: true}, false)
	p.add("b", &traces{others: []string{"z.example.com/z"}}, false)
	p.add("c", &traces{others: othersOf([]string{finalizer, "foregroundDeletion", "orphan"}, finalizer)}, false)
	const where = ": until that controller removes it, the deletion of these objects, of their namespaces, and of the definition of their resource does not end. To see them: kubectl get things.example.com -A " +
		"-o custom-columns=NAMESPACE:.metadata.namespace,NAME:.metadata.name,DELETED:.metadata.deletionTimestamp,FINALIZERS:.metadata.finalizers --context 'a b' | grep -F "
	const want = "things.example.com: 3 objects have nothing of this operator\n" +
		"  ! the finalizer a.example.com/a of another controller is on 1 object, of which 1 is being deleted" + where + "a.example.com/a\n" +
		"  ! the finalizer z.example.com/z of another controller is on 2 objects, of which 1 is being deleted" + where + "z.example.com/z\n"
	for replacement, change := range map[string]func(*ResourceReport){
		" -A ":      func(p *ResourceReport) { r.addCommands(p, things) },
		" -n team ": func(p *ResourceReport) { r.Namespace = "team"; r.addCommands(p, things); r.Namespace = "" },
		" ":         func(p *ResourceReport) { r.addCommands(p, clusterPeerings) },
	} {
		change(&p)
		if got := (&Report{Resources: []ResourceReport{p}}).Text(inspect.Style{}); got != strings.ReplaceAll(want, " -A ", replacement) {
			t.Errorf("got:\n%s", got)
		}
	}
	for i := range 2 * maxFinalizers {
		p.add("many", &traces{others: []string{fmt.Sprintf("f%02d", i)}}, false)
	}
	if len(p.OtherFinalizers) != maxFinalizers {
		t.Errorf("%d finalizers are named", len(p.OtherFinalizers))
	}
}

func TestReportsNameSomeObjectsAndCountAll(t *testing.T) {
	var p ResourceReport
	for i := range 150 {
		p.add(fmt.Sprint(i), &traces{held: true, finalizer: true}, false)
		p.fail(fmt.Sprint(i), errors.New("no"))
	}
	p.add("clean", &traces{}, false)
	p.add("abandoned", &traces{held: true, finalizer: true, patch: map[string]any{"metadata": nil}, orphans: []string{"a"}}, true)
	if p.HeldCount != 150 || len(p.Held) != maxNames || p.Failed != 150 || len(p.Errors) != maxErrors {
		t.Errorf("got %d, %d, %d, %d", p.HeldCount, len(p.Held), p.Failed, len(p.Errors))
	}
	if p.Released != 1 || p.Abandoned != 1 || p.Finalizers != 1 || p.Orphans != 1 || p.Others != 1 {
		t.Errorf("got %+v", p)
	}
}
