package release

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	coordinationv1 "k8s.io/api/coordination/v1"
	apimeta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/cli"
	"github.com/kopf-go/kopf/pkg/cli/release"
	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// expectRefused expects that the release is refused, and that nothing is written.
func (s *scene) expectRefused(want types.GomegaMatcher, adjust ...func(*release.Options)) {
	s.t.Helper()
	config, requests := counted()
	dry, err := s.release(s.t.Context(), config, append(adjust, dryRun)...)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(dry.Refused).To(gomega.ConsistOf(want))
	_, err = s.release(s.t.Context(), config, append(adjust, func(o *release.Options) { o.DryRun = false })...)
	s.Expect(err).To(gomega.MatchError(want))
	s.Expect(requests.Snapshot().Writes("things")).To(gomega.BeZero())
}

func TestAHeldLeaseRefuses(t *testing.T) {
	s := newScene(t, true)
	s.create(1)
	now, holder, seconds := apimeta.NowMicro(), "pod-1", int32(15)
	lease := &coordinationv1.Lease{ObjectMeta: apimeta.ObjectMeta{Namespace: s.namespace, Name: s.settings.Name}}
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &now, LeaseDurationSeconds: &seconds}
	s.Expect(cluster.Client().Create(t.Context(), lease)).To(gomega.Succeed())
	s.expectRefused(gomega.ContainSubstring("pod-1 holds the lease " + s.namespace + "/" + s.namespace))
	s.expectRefused(gomega.ContainSubstring("pod-1 holds the lease"), func(o *release.Options) { o.LeaseNamespace = s.namespace })

	dry, err := s.release(t.Context(), cluster.Config(), dryRun, func(o *release.Options) { o.LeaseNamespace = "default" })
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(dry.Refused).To(gomega.BeEmpty(), "another operator in another namespace")
	s.Expect(dry.Left).NotTo(gomega.ContainElement(gomega.ContainSubstring("lease")), "it is not that of this operator")
	for name, change := range map[string]func(){
		"given up": func() { *lease.Spec.HolderIdentity = "" },
		"expired": func() {
			*lease.Spec.HolderIdentity = "pod-1"
			lease.Spec.RenewTime.Time = time.Now().Add(-time.Hour)
		},
	} {
		change()
		s.Expect(cluster.Client().Update(t.Context(), lease)).To(gomega.Succeed())
		dry, err := s.release(t.Context(), cluster.Config(), dryRun)
		s.Expect(err).NotTo(gomega.HaveOccurred())
		s.Expect(dry.Refused).To(gomega.BeEmpty(), name)
		s.Expect(dry.Left).To(gomega.ContainElement("The lease " + s.namespace + "/" + s.namespace + "."))
	}
}

func TestAPeerRefuses(t *testing.T) {
	s := newScene(t, true)
	s.create(1)
	entry := func(age time.Duration) map[string]any {
		return map[string]any{"priority": int64(0), "lifetime": int64(60), "lastseen": time.Now().Add(-age).UTC().Format(time.RFC3339)}
	}
	peers := testenv.NewObject("KopfPeering", s.namespace, s.namespace, nil)
	peers.Object["status"] = map[string]any{"somebody": entry(0), "gone": entry(time.Hour)}
	s.Expect(cluster.Client().Create(t.Context(), peers)).To(gomega.Succeed())
	refused := gomega.And(gomega.ContainSubstring("somebody has an entry in the KopfPeering"), gomega.Not(gomega.ContainSubstring("gone")))
	s.expectRefused(refused)
	s.expectRefused(refused, func(o *release.Options) { o.Namespace = s.namespace })
	peers.Object["status"] = map[string]any{"gone": entry(time.Hour)}
	s.Expect(cluster.Client().Update(t.Context(), peers)).To(gomega.Succeed())
	_, err := s.release(t.Context(), cluster.Config())
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.expectReleased(1)
}

// A lease without a holder shows that the operator is stopped only if the settings say that it elects
// a leader. Otherwise, the lease can be left from an earlier run. The lease of a manager has another name.
func TestWithoutASignTheEndOfTheOperatorMustBeConfirmed(t *testing.T) {
	s := newScene(t, true)
	s.create(1)
	manager := &coordinationv1.Lease{ObjectMeta: apimeta.ObjectMeta{Namespace: s.namespace, Name: "sites." + s.namespace}}
	now, holder, seconds := apimeta.NowMicro(), "pod-1", int32(3600)
	manager.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &now, LeaseDurationSeconds: &seconds}
	s.Expect(cluster.Client().Create(t.Context(), manager)).To(gomega.Succeed())

	unconfirmed := func(o *release.Options) { o.OperatorStopped = false }
	want := `it is unknown whether the operator runs, and a running one would handle released objects as new ones: there is no lease "` + s.namespace + `"; there is no peering "` + s.namespace + `". `
	config, requests := counted()
	dry, err := s.release(t.Context(), config, unconfirmed, dryRun)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(dry.Refused).To(gomega.ConsistOf(gomega.And(gomega.HavePrefix(want), gomega.ContainSubstring("confirm that with --operator-stopped; "), gomega.HaveSuffix("add --lease-name"))))
	s.Expect(dry.Resources[0].Released).To(gomega.Equal(1))
	_, err = s.release(t.Context(), config, unconfirmed)
	s.Expect(err).To(gomega.MatchError(dry.Refused[0]))
	s.Expect(requests.Snapshot().Writes("things")).To(gomega.BeZero())

	held := gomega.ContainSubstring("pod-1 holds the lease " + s.namespace + "/" + manager.Name)
	byName := func(o *release.Options) { o.LeaseName = manager.Name }
	s.expectRefused(held, unconfirmed, byName)
	s.expectRefused(held, byName) // what is known counts, whatever is confirmed
	*manager.Spec.HolderIdentity = ""
	s.Expect(cluster.Client().Update(t.Context(), manager)).To(gomega.Succeed())
	s.expectRefused(gomega.And(
		gomega.ContainSubstring(`no operator holds the lease "`+manager.Name+`", but an operator without leader election and without shards holds none`),
		gomega.ContainSubstring(`Settings.Replicas.LeaderElection`),
		gomega.ContainSubstring("confirm that with --operator-stopped"),
	), unconfirmed, byName)
	s.settings.Replicas.LeaderElection = true
	done, err := s.release(t.Context(), config, unconfirmed, byName)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(done.Refused).To(gomega.BeEmpty())
	s.expectReleased(1)
}

// An empty peering shows that the operator is stopped only if the settings say that it needs the peering.
func TestAPeeringThatTheOperatorCanIgnoreProvesNothing(t *testing.T) {
	s := newScene(t, true)
	s.create(1)
	peers := testenv.NewObject("ClusterKopfPeering", "", s.namespace, nil)
	s.Expect(cluster.Client().Create(t.Context(), peers)).To(gomega.Succeed())
	unconfirmed := func(o *release.Options) { o.OperatorStopped = false }
	s.expectRefused(gomega.ContainSubstring(`no operator is in the peering "`+s.namespace+`", but an operator with --standalone is in none`), unconfirmed)
	s.settings.Peering.Mandatory = true
	_, err := s.release(t.Context(), cluster.Config(), unconfirmed)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.expectReleased(1)
}

func TestAnOperatorThatStartsMeanwhileEndsTheRelease(t *testing.T) {
	s := newScene(t, true)
	s.create(600)
	_, err := s.release(t.Context(), cluster.Config(), func(o *release.Options) {
		o.Progress = func(string, int, int) {
			peers := testenv.NewObject("ClusterKopfPeering", "", s.namespace, nil)
			peers.Object["status"] = map[string]any{"somebody": map[string]any{"priority": int64(0), "lastseen": time.Now().UTC().Format(time.RFC3339)}}
			s.Expect(cluster.Client().Create(t.Context(), peers)).To(gomega.Succeed())
		}
	})
	var running *release.RunningError
	s.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("somebody")))
	s.Expect(errors.As(err, &running)).To(gomega.BeTrue())
	left := 0
	for _, obj := range s.all() {
		if len(obj.GetFinalizers()) == 3 {
			left++
		}
	}
	s.Expect(left).To(gomega.Equal(350))
}

func TestTheProgressOfOtherHandlersRefuses(t *testing.T) {
	s := newScene(t, true)
	s.create(2, func(obj *unstructured.Unstructured) {
		annotations := obj.GetAnnotations()
		annotations[prefix+"theirs"] = open
		obj.SetAnnotations(annotations)
	})
	s.expectRefused(gomega.And(gomega.ContainSubstring("theirs (objects: 2)"), gomega.ContainSubstring("--also-ids theirs")))
	_, err := s.release(t.Context(), cluster.Config(), func(o *release.Options) { o.AlsoIDs = []string{"theirs"} })
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.expectReleased(2)
}

func TestWithoutPermissionForLeasesTheReleaseIsRefused(t *testing.T) {
	s := newScene(t, true)
	s.create(1)
	config := cluster.Config()
	faults := testenv.Strike(config)
	faults.Begin(testenv.Answer(403, "Forbidden", 0), func(r testenv.Request) bool { return r.Resource == "leases" })
	_, err := s.release(t.Context(), config)
	s.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("it is unknown whether an operator runs, because its lease")))
}

func TestAResourceWithoutHandlersIsNotReleased(t *testing.T) {
	s := newScene(t, true)
	s.registry.OnEvent(kopf.Resource("kopf.dev", "v1", "kopfexamples"), func(context.Context, *kopf.WatchEvent) error { return nil }, kopf.ID("seen"))
	_, err := s.release(t.Context(), cluster.Config(), func(o *release.Options) { o.All, o.Kinds = false, []string{"kopfexamples"} })
	s.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("declares no handlers for kopfexamples.kopf.dev; it has handlers for things.")))
	report, err := s.release(t.Context(), cluster.Config())
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(report.Resources).To(gomega.HaveLen(1), "objects of event handlers have no state of the operator")
}

func TestOtherPrefixes(t *testing.T) {
	s := newScene(t, true)
	const mine = "my-op.example.com/"
	s.create(1, func(obj *unstructured.Unstructured) {
		annotations := theirs()
		annotations[mine+"last-handled-configuration"], annotations[mine+"fn"], annotations[mine+"kopf-managed"] = "{}", open, "yes"
		annotations[mine+"request-skip"] = "1 fn"
		obj.SetAnnotations(annotations)
		obj.SetFinalizers([]string{"example.com/first", mine + "held", "example.com/last"})
	})
	report, err := s.release(t.Context(), cluster.Config(), func(o *release.Options) { o.Finalizer, o.Prefixes = mine+"held", []string{mine[:len(mine)-1]} })
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(report.Resources[0].Finalizers).To(gomega.Equal(1))
	s.expectReleased(1)
}

func TestChildrenInOtherNamespacesAreNamed(t *testing.T) {
	s := newScene(t, true)
	s.settings.Name = s.namespace
	s.registry.Ensure(s.things(), func(context.Context, *kopf.Change) ([]client.Object, error) { return nil, nil }, kopf.ID("children"))
	s.create(2, func(obj *unstructured.Unstructured) {
		annotations := obj.GetAnnotations()
		annotations[prefix+"kopf-children"] = `["ConfigMap"]`
		if obj.GetName() == "a00001" {
			annotations[prefix+"kopf-children"] = `["ConfigMap","Secret/other"]`
		}
		obj.SetAnnotations(annotations)
	})
	report, err := s.release(t.Context(), cluster.Config())
	s.Expect(err).NotTo(gomega.HaveOccurred())
	s.Expect(report.Resources[0].Orphans).To(gomega.Equal(1))
	s.Expect(report.Text(inspect.Style{})).To(gomega.And(gomega.ContainSubstring("1 of them"), gomega.ContainSubstring(prefix+"ensured-by")))
	s.expectReleased(2)
}

// ran is the outcome of a command of a program.
type ran struct {
	out, log string
	err      error
}

// command runs a command of a program with the handlers.
func (s *scene) command(arguments ...string) ran {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "kubeconfig")
	s.Expect(os.WriteFile(path, cluster.KubeConfig(), 0o600)).To(gomega.Succeed())
	for _, command := range kopf.Commands(func(o *kopf.Options) {
		o.Registry, o.Settings.Peering.Name, o.Settings.Name = s.registry, s.namespace, s.namespace
	}) {
		if command.Name() != arguments[0] {
			continue
		}
		var out, log bytes.Buffer
		command.SetOut(&out)
		command.SetErr(&log)
		command.SetArgs(append(arguments[1:], "--kubeconfig", path))
		err := command.ExecuteContext(s.t.Context())
		return ran{out.String(), log.String(), err}
	}
	s.t.Fatalf("there is no command %s", arguments[0])
	return ran{}
}

func TestTheCommand(t *testing.T) {
	s := newScene(t, true)
	s.create(2)
	for text, arguments := range map[string][]string{
		"no kind is given":                 {"release"},
		"both kinds and --all":             {"release", "things", "--all"},
		"choose one":                       {"release", "--all", "--run-startup", "--prefix=x"},
		"selects nothing in this cluster":  {"release", "nothings"},
		"the annotation prefix \"A B\" mu": {"release", "--all", "--prefix", "A B"},
	} {
		s.Expect(s.command(arguments...).err).To(gomega.MatchError(gomega.ContainSubstring(text)))
	}
	s.registry.OnStartup(func(_ context.Context, c *kopf.Startup) error {
		c.Settings().Persistence.Finalizer = "example.com/mine"
		return nil
	}, kopf.ID("start"))
	s.Expect(s.command("release", "--all").err).To(gomega.MatchError(gomega.ContainSubstring("add --run-startup")))
	s.Expect(s.command("release", "--all", "--finalizer=x").err).To(gomega.MatchError(gomega.ContainSubstring("add --run-startup")))
	dry := s.command("release", "--all", "--dry-run", "--finalizer="+finalizer, "--prefix=kopf.zalando.org")
	s.Expect(cli.ExitCode(dry.err)).To(gomega.Equal(cli.ExitError))
	s.Expect(dry.err).To(gomega.MatchError("the release would be refused"))
	s.Expect(dry.out).To(gomega.And(gomega.ContainSubstring("2 of 2 objects would be released, 2 from the finalizer\n"), gomega.ContainSubstring("\n! The release would be refused: it is unknown whether")))
	started := s.command("release", "--all", "--run-startup", "--dry-run", "-o", "json")
	s.Expect(cli.ExitCode(started.err)).To(gomega.Equal(cli.ExitError))
	s.Expect(started.out).To(gomega.And(gomega.ContainSubstring(`"finalizers": 0`), gomega.ContainSubstring(`"released": 2`), gomega.ContainSubstring(`"refused": [`)))

	s.Expect(s.objects.Delete(t.Context(), "a00000", apimeta.DeleteOptions{})).To(gomega.Succeed())
	refused := s.command("release", "--all", "--finalizer="+finalizer, "--prefix=kopf.zalando.org")
	s.Expect(refused.err).To(gomega.MatchError(gomega.ContainSubstring("confirm that with --operator-stopped")))
	s.Expect(cli.ExitCode(refused.err)).To(gomega.Equal(cli.ExitError))
	done := s.command("release", "things."+s.resource.Group, "--operator-stopped", "--finalizer="+finalizer, "--prefix=kopf.zalando.org", "-n", s.namespace)
	s.Expect(done.err).To(gomega.MatchError("objects that are being deleted were skipped"))
	s.Expect(done.out).To(gomega.ContainSubstring("  - " + s.namespace + "/a00000\n"))
	s.Expect(done.log).To(gomega.Equal("things." + s.resource.Group + ": 2 of 2 objects\n"))
}
