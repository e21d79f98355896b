package admission

import (
	"errors"
	"sync"
	"testing"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type unstructuredObject = unstructured.Unstructured

// haveCode matches the answer of the API server to a rejected request.
func haveCode(code int32, message string) types.GomegaMatcher {
	return gomega.SatisfyAll(
		gomega.WithTransform(func(err error) int32 {
			var status apierrors.APIStatus
			if errors.As(err, &status) {
				return status.Status().Code
			}
			return 0
		}, gomega.Equal(code)),
		gomega.MatchError(gomega.ContainSubstring(message)))
}

// notes record what handlers have seen. They are safe for concurrent use.
type notes struct {
	mu    sync.Mutex
	lines []string
}

func (n *notes) add(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, line)
}

func (n *notes) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string{}, n.lines...)
}

// HandleWarningHeader records the warnings of the API server.
func (n *notes) HandleWarningHeader(_ int, _ string, text string) { n.add(text) }

// newClientWithWarnings returns a client and the warnings that it gets.
func newClientWithWarnings(t *testing.T) (client.Client, *notes) {
	t.Helper()
	warnings := &notes{}
	config := rest.CopyConfig(cluster.Config())
	config.WarningHandler = warnings
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c, warnings
}
