package peering

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/settings"
)

// nobody has no permissions but those of everybody.
func nobody() *rest.Config { return as("nobody") }

func as(user string) *rest.Config {
	config := cluster.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	return config
}

func TestTheDocumentedPermissionsAreEnough(t *testing.T) {
	g := gomega.NewWithT(t)
	namespace := cluster.Namespace(t)
	object := create(t, cluster, api, "", namespace)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"kopf.dev"}, Resources: []string{"clusterkopfpeerings"}, ResourceNames: []string{namespace},
		Verbs: []string{"get", "list", "watch", "patch"},
	}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: namespace},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: namespace}},
	}
	g.Expect(cluster.Client().Create(t.Context(), role)).To(gomega.Succeed())
	g.Expect(cluster.Client().Create(t.Context(), binding)).To(gomega.Succeed())

	low := join(t, as(namespace), "low", settings.Peering{Name: namespace, Mandatory: true, Lifetime: brief})
	g.Eventually(low.history).Should(gomega.Equal([]string{"active"}))
	high := join(t, as(namespace), "high", settings.Peering{Name: namespace, Mandatory: true, Lifetime: brief, Priority: 1})
	g.Eventually(low.history).Should(gomega.Equal([]string{"active", "paused"}))
	high.stop()
	g.Expect(entries(cluster, object)()).NotTo(gomega.HaveKey("high"))
}

func TestWithoutPermissions(t *testing.T) {
	tests := map[string]struct {
		mandatory bool
		want      string
		said      string
	}{
		"an automatic peering is not used":    {false, "active", "serves without regard to others"},
		"a mandatory one pauses the operator": {true, "paused", "may not look at its mandatory peering"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			namespace := cluster.Namespace(t)
			create(t, cluster, api, namespace, "default")
			o := join(t, nobody(), "me", settings.Peering{Mandatory: test.mandatory}, namespace)
			g.Eventually(o.history).Should(gomega.Equal([]string{test.want}))
			g.Expect(o.lines()).To(gomega.ConsistOf(gomega.ContainSubstring(test.said)))
		})
	}
}

// line is a connection that can be cut.
type line struct {
	next   http.RoundTripper
	mu     sync.Mutex
	cut    bool
	bodies []io.Closer // of the watches
}

func (l *line) RoundTrip(request *http.Request) (*http.Response, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return nil, errors.New("the line is cut")
	}
	response, err := l.next.RoundTrip(request)
	if err == nil && strings.Contains(request.URL.RawQuery, "watch=true") {
		l.bodies = append(l.bodies, response.Body)
	}
	return response, err
}

func (l *line) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	for _, body := range l.bodies {
		_ = body.Close()
	}
	l.bodies = nil
}

func TestWhatHappensWhileTheConnectionIsCutIsNoticedAfterwards(t *testing.T) {
	g := gomega.NewWithT(t)
	namespace := cluster.Namespace(t)
	create(t, cluster, api, namespace, "default")
	cut, config := &line{}, cluster.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		cut.next = next
		return cut
	})
	o := join(t, config, "me", settings.Peering{}, namespace)
	g.Eventually(o.history).Should(gomega.Equal([]string{"active"}))
	cut.set(true)
	high := join(t, cluster.Config(), "high", settings.Peering{Priority: 1, Lifetime: time.Second}, namespace)
	g.Eventually(high.history).Should(gomega.Equal([]string{"active"}))
	g.Consistently(o.history, time.Second).Should(gomega.Equal([]string{"active"}))
	cut.set(false)
	g.Eventually(o.history).Should(gomega.Equal([]string{"active", "paused"}))
	cut.set(true) // the other goes on giving signs of life, and they are not heard
	g.Consistently(o.history, 3*time.Second).Should(gomega.Equal([]string{"active", "paused"}))
	high.stop()
	cut.set(false)
	g.Eventually(o.history).Should(gomega.Equal([]string{"active", "paused", "active"}))
}
