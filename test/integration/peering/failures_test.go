package peering

import (
	"encoding/json"
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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/peering"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/test/testenv"
)

// withoutPermissions returns a configuration with only the permissions of every user.
func withoutPermissions() *rest.Config { return impersonate("nobody") }

func impersonate(user string) *rest.Config {
	config := cluster.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	return config
}

func TestDocumentedPermissionsAreEnough(t *testing.T) {
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

	low := runPeering(t, impersonate(namespace), "low", settings.Peering{Name: namespace, Mandatory: true, Lifetime: shortLifetime})
	g.Eventually(low.history).Should(gomega.Equal([]string{"active"}))
	high := runPeering(t, impersonate(namespace), "high", settings.Peering{Name: namespace, Mandatory: true, Lifetime: shortLifetime, Priority: 1})
	g.Eventually(low.history).Should(gomega.Equal([]string{"active", "paused"}))
	high.stop()
	g.Expect(entries(cluster, object)()).NotTo(gomega.HaveKey("high"))

	g.Expect(low.lines()).To(gomega.ContainElement(gomega.MatchRegexp("ignores other operators in this API group.*zalando.org")), "the cluster has both definitions")
	frozen, err := peering.Freeze(t.Context(), impersonate(namespace), peering.Target{Name: namespace}, peering.FreezeOptions{Lifetime: time.Hour})
	g.Expect(frozen, err).To(gomega.Equal(peering.Frozen{Paused: []string{"low"}, Forbidden: []string{"zalando.org"}}))
	g.Expect(peering.Resume(t.Context(), impersonate(namespace), peering.Target{Name: namespace}, "")).To(gomega.Succeed())
}

func TestWithoutPermissions(t *testing.T) {
	tests := map[string]struct {
		mandatory bool
		want      string
		logged    string
	}{
		"optional":  {false, "active", "ignores other operators"},
		"mandatory": {true, "paused", "may not read its mandatory peering object"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			namespace := cluster.Namespace(t)
			create(t, cluster, api, namespace, "default")
			o := runPeering(t, withoutPermissions(), "me", settings.Peering{Mandatory: test.mandatory}, namespace)
			g.Eventually(o.history).Should(gomega.Equal([]string{test.want}))
			g.Expect(o.lines()).To(gomega.ConsistOf(gomega.ContainSubstring(test.logged)))
		})
	}
}

// connection is a connection to the API server that can fail.
type connection struct {
	next   http.RoundTripper
	mu     sync.Mutex
	down   bool
	bodies []io.Closer // of the watches
}

func (l *connection) RoundTrip(request *http.Request) (*http.Response, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return nil, errors.New("the connection is down")
	}
	response, err := l.next.RoundTrip(request)
	if err == nil && strings.Contains(request.URL.RawQuery, "watch=true") {
		l.bodies = append(l.bodies, response.Body)
	}
	return response, err
}

func (l *connection) setDown(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = cut
	for _, body := range l.bodies {
		_ = body.Close()
	}
	l.bodies = nil
}

func TestChangesDuringAConnectionFailureAreNoticedAfterwards(t *testing.T) {
	g := gomega.NewWithT(t)
	namespace := cluster.Namespace(t)
	create(t, cluster, api, namespace, "default")
	failing, config := &connection{}, cluster.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		failing.next = next
		return failing
	})
	o := runPeering(t, config, "me", settings.Peering{}, namespace)
	g.Eventually(o.history).Should(gomega.Equal([]string{"active"}))
	failing.setDown(true)
	high := runPeering(t, cluster.Config(), "high", settings.Peering{Priority: 1, Lifetime: time.Second}, namespace)
	g.Eventually(high.history).Should(gomega.Equal([]string{"active"}))
	g.Consistently(o.history, time.Second).Should(gomega.Equal([]string{"active"}))
	failing.setDown(false)
	g.Eventually(o.history).Should(gomega.Equal([]string{"active", "paused"}))
	failing.setDown(true) // the peer renews its entry, but the operator cannot see it
	g.Consistently(o.history, 3*time.Second).Should(gomega.Equal([]string{"active", "paused"}))
	high.stop()
	failing.setDown(false)
	g.Eventually(o.history).Should(gomega.Equal([]string{"active", "paused", "active"}))
}

// Another cluster takes the place of the first one, as one that was restored from a backup: its
// versions are lower. A peer in it pauses the operator.
func TestPeersInAnotherHistoryAreSeen(t *testing.T) {
	t.Parallel()
	g, name := gomega.NewWithT(t), cluster.Namespace(t)
	second := testenv.Start(t, testenv.Options{CRDs: []string{"config/crd/kopf.dev"}})
	restored := create(t, second, api, "", name)
	text, err := json.Marshal(map[string]any{"status": map[string]any{"developer": map[string]any{
		"priority": 100, "lifetime": 3600, "lastseen": time.Now().UTC().Format("2006-01-02T15:04:05.000000+00:00"),
	}}})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(second.Client().Patch(t.Context(), restored.DeepCopy(), client.RawPatch(types.MergePatchType, text))).To(gomega.Succeed())
	version := restored.GetResourceVersion()

	address, config := testenv.Behind(t, cluster)
	faults := testenv.Strike(config)
	object := create(t, cluster, api, "", name)
	o := runPeering(t, config, "operator", settings.Peering{Name: name, Lifetime: time.Hour})
	g.Eventually(o.last).Should(gomega.Equal("active"))
	g.Eventually(func() bool { // the version that the operator knows
		found, err := cluster.Current(object)()
		order, unknown := resourceversion.CompareResourceVersion(version, found.GetResourceVersion())
		setEntry(t, object, "another", map[string]any{"priority": 0, "lifetime": 1, "lastseen": "2020-01-01T00:00:00"})
		return err == nil && unknown == nil && order < 0
	}).Should(gomega.BeTrue())
	address.Switch(t, second)
	faults.Cut(func(testenv.Request) bool { return true })
	g.Eventually(o.last).Should(gomega.Equal("paused"), strings.Join(o.lines(), "\n"))
	g.Expect(strings.Join(o.lines(), "\n")).NotTo(gomega.ContainSubstring("cannot be watched"))
}
