package release

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/cli/inspect"
	"github.com/kopf-go/kopf/pkg/internal/plural"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// OtherFinalizer is a finalizer of another controller, which holds objects also after the release.
type OtherFinalizer struct {
	Name string `json:"name"`
	// Objects have the finalizer, and Deleting is the number of those that are being deleted.
	Objects  int `json:"objects"`
	Deleting int `json:"deleting"`
	// Command shows the objects.
	Command string `json:"command"`
}

// maxFinalizers limits the finalizers in a report.
const maxFinalizers = 20

// othersOf returns the finalizers without that of the operator, and without those that Kubernetes
// removes itself when it deletes an object.
func othersOf(finalizers []string, own string) (others []string) {
	for _, name := range finalizers {
		if name != own && name != metav1.FinalizerDeleteDependents && name != metav1.FinalizerOrphanDependents {
			others = append(others, name)
		}
	}
	return others
}

// addFinalizers counts the finalizers of other controllers.
func (p *ResourceReport) addFinalizers(t *traces) {
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
}

// addCommands adds the commands that show the objects with finalizers of other controllers.
func (r *Releaser) addCommands(p *ResourceReport, of selector.Resource) {
	where := ""
	switch {
	case of.Namespaced && r.Namespace != "":
		where = " -n " + r.Namespace
	case of.Namespaced:
		where = " -A"
	}
	list := r.CommandLine.Kubectl("get " + p.Resource + where +
		" -o custom-columns=NAMESPACE:.metadata.namespace,NAME:.metadata.name,DELETED:.metadata.deletionTimestamp,FINALIZERS:.metadata.finalizers")
	for i := range p.OtherFinalizers {
		p.OtherFinalizers[i].Command = list + " | grep -F " + inspect.Quote(p.OtherFinalizers[i].Name)
	}
}

// text warns of the finalizer.
func (f OtherFinalizer) text() string {
	deleting := ""
	if f.Deleting > 0 {
		deleting = fmt.Sprintf(", of which %s being deleted", plural.Of(f.Deleting, "is", "are"))
	}
	return fmt.Sprintf("the finalizer %s of another controller is on %s%s: until that controller removes it, the deletion of these objects, of their namespaces, and of the definition of their resource does not end. To see them: %s",
		f.Name, plural.Of(f.Objects, "object", "objects"), deleting, f.Command)
}
