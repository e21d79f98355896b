package release

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/inspect"
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
