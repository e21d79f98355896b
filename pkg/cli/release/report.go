package release

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/internal/plural"
)

// Report says what was released, or would be.
type Report struct {
	// DryRun means that nothing was written.
	DryRun bool `json:"dryRun"`
	// Refused says why the release would be refused, if it is a dry run.
	Refused   []string         `json:"refused,omitempty"`
	Resources []ResourceReport `json:"resources"`
	// Webhooks are the managed webhook configurations and conversions that were removed.
	Webhooks []string `json:"webhooks,omitempty"`
	// Left says what the release does not remove.
	Left []string `json:"left,omitempty"`
}

// ResourceReport is about the objects of one resource.
type ResourceReport struct {
	Resource string `json:"resource"`
	Objects  int    `json:"objects"`
	// Released are the objects with traces of the operator, which were removed. Finalizers are
	// those of them with the finalizer, and Abandoned those of these that were being deleted.
	Released   int `json:"released"`
	Finalizers int `json:"finalizers"`
	Abandoned  int `json:"abandoned"`
	// Held are the names of objects that are being deleted and wait for the operator. They are
	// skipped. HeldCount is their number, which can be higher.
	Held      []string `json:"held,omitempty"`
	HeldCount int      `json:"heldCount"`
	// Orphans is the number of objects with children that no garbage collector deletes with
	// the object.
	Orphans int `json:"orphans"`
	// Failed is the number of objects that could not be written, and Errors some of the reasons.
	Failed int      `json:"failed"`
	Errors []string `json:"errors,omitempty"`
	// Others is the number of objects with nothing of the operator, which are left as they are.
	Others int `json:"others"`
	// OtherFinalizers hold the objects also after the release.
	OtherFinalizers []OtherFinalizer `json:"otherFinalizers,omitempty"`
}

// maxNames limits the names in a report, and maxErrors the errors.
const (
	maxNames  = 100
	maxErrors = 5
)

// add counts an object, except for the outcome of the write.
func (p *ResourceReport) add(name string, t *traces, abandon bool) {
	for _, name := range t.others {
		i, known := slices.BinarySearchFunc(p.OtherFinalizers, name, func(f OtherFinalizer, name string) int { return cmp.Compare(f.Name, name) })
		if !known && len(p.OtherFinalizers) >= maxFinalizers {
			continue
		}
		if !known {
			p.OtherFinalizers = slices.Insert(p.OtherFinalizers, i, OtherFinalizer{Name: name})
		}
		p.OtherFinalizers[i].Objects++
		if t.deleting {
			p.OtherFinalizers[i].Deleting++
		}
	}
	switch {
	case t.held && !abandon:
		p.HeldCount++
		if len(p.Held) < maxNames {
			p.Held = append(p.Held, name)
		}
		return
	case t.isEmpty():
		p.Others++
		return
	}
	p.Released++
	if t.finalizer {
		p.Finalizers++
	}
	if t.held {
		p.Abandoned++
	}
	if len(t.orphans) > 0 {
		p.Orphans++
	}
}

func (p *ResourceReport) fail(name string, err error) {
	p.Failed++
	if len(p.Errors) < maxErrors {
		p.Errors = append(p.Errors, fmt.Sprintf("%s: %v", name, err))
	}
}

// Objects returns the number of objects of all resources.
func (r *Report) Objects() int {
	sum := 0
	for _, one := range r.Resources {
		sum += one.Objects
	}
	return sum
}

// Held returns the number of skipped objects.
func (r *Report) Held() int {
	sum := 0
	for _, one := range r.Resources {
		sum += one.HeldCount
	}
	return sum
}

// Failed returns the number of objects that could not be written.
func (r *Report) Failed() int {
	sum := 0
	for _, one := range r.Resources {
		sum += one.Failed
	}
	return sum
}

// Text returns the report for a person.
func (r *Report) Text(style inspect.Style) string {
	var b strings.Builder
	for _, one := range r.Resources {
		one.text(&b, style, r.DryRun)
	}
	if len(r.Resources) == 0 {
		b.WriteString("The cluster serves no resources on which this program stores something.\n")
	}
	for _, name := range r.Webhooks {
		verb := "was"
		if r.DryRun {
			verb = "would be"
		}
		fmt.Fprintf(&b, "%s %s removed\n", name, verb)
	}
	for _, reason := range r.Refused {
		style.Paragraph(&b, "! ", "The release would be refused: "+reason)
	}
	style.List(&b, "This is left", r.Left)
	return b.String()
}

func (p *ResourceReport) text(b *strings.Builder, style inspect.Style, dry bool) {
	if p.Released+p.HeldCount+p.Failed == 0 { // as in a repetition
		fmt.Fprintf(b, "%s: %s nothing of this operator\n", p.Resource, plural.Of(p.Objects, "object has", "objects have"))
		p.finalizers(b, style)
		return
	}
	verb := plural.Word(p.Released, "was", "were")
	if dry {
		verb = "would be"
	}
	fmt.Fprintf(b, "%s: %d of %s %s released, %d from the finalizer\n", p.Resource, p.Released, plural.Of(p.Objects, "object", "objects"), verb, p.Finalizers)
	if p.Others > 0 {
		style.Paragraph(b, "  ", plural.Of(p.Others, "other object has", "other objects have")+" nothing of this operator, and "+plural.Word(p.Others, "is", "are")+" left as "+plural.Word(p.Others, "it is", "they are"))
	}
	if p.Abandoned > 0 {
		are := plural.Word(p.Abandoned, "was", "were")
		if dry {
			are = plural.Word(p.Abandoned, "is", "are")
		}
		style.Paragraph(b, "  ", fmt.Sprintf("%d of them %s being deleted, and nothing cleans up for %s", p.Abandoned, are, plural.Word(p.Abandoned, "it", "them")))
	}
	if p.Orphans > 0 {
		style.Paragraph(b, "  ", plural.Of(p.Orphans, "of them has", "of them have")+" children in other namespaces, which stay when the object is deleted: delete them by the label of handlers of Ensure")
	}
	if p.HeldCount > 0 {
		style.Paragraph(b, "  ! ", "skipped: "+plural.Of(p.HeldCount, "object is being deleted, and waits", "objects are being deleted, and wait")+" for the deletion handlers; let the operator finish that, or clean up and release with --abandon-deletions")
		style.List(b, "", p.Held)
	}
	if p.Failed > 0 {
		style.Paragraph(b, "  ! ", plural.Of(p.Failed, "object could not be written, and is not released", "objects could not be written, and are not released"))
		style.List(b, "", p.Errors)
	}
	p.finalizers(b, style)
}

// finalizers warns of the finalizers of other controllers.
func (p *ResourceReport) finalizers(b *strings.Builder, style inspect.Style) {
	for _, each := range p.OtherFinalizers {
		deleting := ""
		if each.Deleting > 0 {
			deleting = fmt.Sprintf(", of which %s being deleted", plural.Of(each.Deleting, "is", "are"))
		}
		style.Paragraph(b, "  ! ", fmt.Sprintf("the finalizer %s of another controller is on %s%s: until that controller removes it, the deletion of these objects, of their namespaces, and of the definition of their resource does not end. To see them: %s",
			each.Name, plural.Of(each.Objects, "object", "objects"), deleting, each.Command))
	}
}

// nameOf returns a name with its namespace.
func nameOf(obj metav1.Object) string {
	if namespace := obj.GetNamespace(); namespace != "" {
		return namespace + "/" + obj.GetName()
	}
	return obj.GetName()
}
