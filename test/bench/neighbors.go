package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"sync"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// neighborFigures holds the figures of an operator with its default limits, and of another client
// of the same API server.
type neighborFigures struct {
	Subject     string `json:"subject"`
	Description string `json:"description"`

	Create Phase `json:"create"`
	// Refused is the part of the requests of the operator with the answer 429.
	Refused float64 `json:"refused"`
	// Neighbor has the requests of the other client from the first creation until all objects are
	// handled, NeighborAlone those before. NeighborOfLoad has those until the last creation: beside the load, which
	// creates objects as fast as it can. NeighborOfOperator has those afterwards.
	Neighbor           Latency `json:"neighbor"`
	NeighborAlone      Latency `json:"neighborAlone"`
	NeighborOfLoad     Latency `json:"neighborOfLoad"`
	NeighborOfOperator Latency `json:"neighborOfOperator"`
	// NeighborRefused counts the requests of the other client with the answer 429, NeighborFailures
	// those that have failed otherwise.
	NeighborRefused  int `json:"neighborRefused"`
	NeighborFailures int `json:"neighborFailures"`
}

// The users of the API server. Administrators, such as the load, are exempt from its priorities.
const (
	operatorUser = "bench:operator"
	neighborUser = "bench:neighbor"
)

// neighborSteps returns the steps for an operator with default limits.
func neighborSteps(m *measurement) []step {
	return []step{
		{"users", m.createUsers},
		{"start", m.start},
		{"warm up", m.warm},
		{"alone", m.neighborAlone},
		{"create", m.createWithNeighbor},
	}
}

// serverFlags returns the flags of the API server.
func (o options) serverFlags(subject string) map[string]string {
	flags := map[string]string{}
	if o.seats > 0 {
		flags["max-mutating-requests-inflight"] = strconv.Itoa(o.seats)
	}
	if subject == sharingFiltered {
		flags["feature-gates"] = "ShardedListAndWatch=true"
	}
	return flags
}

// createUsers permits everything to the operator and its neighbor. With seats, the operator has the
// lowest priority.
func (m *measurement) createUsers(ctx context.Context) error {
	for _, user := range []string{operatorUser, neighborUser} {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		}
		if _, err := m.clients.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for i := range neighborMaps {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("neighbor-", i)}}
		if _, err := m.clients.CoreV1().ConfigMaps(namespace).Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if m.seats == 0 {
		return nil
	}
	return m.createPriority(ctx)
}

// createPriority gives a low priority to the operator: 5 of about 250 shares of the seats.
func (m *measurement) createPriority(ctx context.Context) error {
	const name = "bench-low"
	limited := &flowcontrolv1.LimitedPriorityLevelConfiguration{
		NominalConcurrencyShares: new(int32(5)), LendablePercent: new(int32(0)), BorrowingLimitPercent: new(int32(0)),
		LimitResponse: flowcontrolv1.LimitResponse{
			Type:    flowcontrolv1.LimitResponseTypeQueue,
			Queuing: &flowcontrolv1.QueuingConfiguration{Queues: 16, HandSize: 4, QueueLengthLimit: 50},
		},
	}
	if m.reject {
		limited.LimitResponse = flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject}
	}
	level := &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       flowcontrolv1.PriorityLevelConfigurationSpec{Type: flowcontrolv1.PriorityLevelEnablementLimited, Limited: limited},
	}
	if _, err := m.clients.FlowcontrolV1().PriorityLevelConfigurations().Create(ctx, level, metav1.CreateOptions{}); err != nil {
		return err
	}
	all := []string{flowcontrolv1.ResourceAll}
	schema := &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: name},
			MatchingPrecedence:         10,
			DistinguisherMethod:        &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType},
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects:      []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: operatorUser}}},
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{{Verbs: all, APIGroups: all, Resources: all, ClusterScope: true, Namespaces: all}},
			}},
		},
	}
	_, err := m.clients.FlowcontrolV1().FlowSchemas().Create(ctx, schema, metav1.CreateOptions{})
	return err
}

// neighborMaps is the number of objects that the neighbor changes.
const neighborMaps = 10

// neighbor is another client of the API server. It sends requests at a fixed rate, however long the
// answers take.
type neighbor struct {
	clients kubernetes.Interface

	mu                sync.Mutex
	times             []time.Duration
	loaded            int // of the times, when the load has ended
	refused, failures int
}

func newNeighbor(config *rest.Config) (*neighbor, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.Impersonate.UserName = neighborUser
	clients, err := kubernetes.NewForConfig(config)
	return &neighbor{clients: clients}, err
}

// run sends requests until the context is done, and waits for the last answers.
func (n *neighbor) run(ctx context.Context, rate int) {
	var requests sync.WaitGroup
	defer requests.Wait()
	if rate == 0 {
		return
	}
	ticks := time.NewTicker(time.Second / time.Duration(rate))
	defer ticks.Stop()
	for number := 0; ; number++ {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			requests.Go(func() { n.request(context.WithoutCancel(ctx), number) })
		}
	}
}

func (n *neighbor) request(ctx context.Context, number int) {
	body := fmt.Appendf(nil, `{"data":{"number":"%d"}}`, number)
	began := time.Now()
	err := n.clients.CoreV1().RESTClient().Patch(types.MergePatchType).MaxRetries(0).
		Namespace(namespace).Resource("configmaps").Name(fmt.Sprint("neighbor-", number%neighborMaps)).Body(body).Do(ctx).Error()
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case err == nil || apierrors.IsConflict(err):
		n.times = append(n.times, time.Since(began))
	case apierrors.IsTooManyRequests(err):
		n.refused++
	default:
		n.failures++
	}
}

// beside calls a function beside the requests of the neighbor.
func (m *measurement) beside(ctx context.Context, do func(*neighbor) error) (*neighbor, error) {
	n, err := newNeighbor(m.config)
	if err != nil {
		return nil, err
	}
	running, end := context.WithCancel(ctx)
	var ended sync.WaitGroup
	ended.Go(func() { n.run(running, m.rate) })
	err = do(n)
	end()
	ended.Wait()
	return n, err
}

// endLoad notes that the load has ended.
func (n *neighbor) endLoad() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.loaded = len(n.times)
}

// neighborAlone measures the neighbor while the operator has nothing to do.
func (m *measurement) neighborAlone(ctx context.Context) error {
	n, err := m.beside(ctx, func(*neighbor) error { return pause(ctx, m.window) })
	if err != nil {
		return err
	}
	m.neighborFigures.NeighborAlone = latencyOf(n.times)
	return nil
}

// createWithNeighbor measures the operator and its neighbor during a burst of creations.
func (m *measurement) createWithNeighbor(ctx context.Context) error {
	before, err := m.operator.ask(commandSample)
	if err != nil {
		return err
	}
	f := &m.neighborFigures
	profile, err := m.profile("create")
	if err != nil {
		return err
	}
	var took time.Duration
	n, err := m.beside(ctx, func(n *neighbor) error {
		began := time.Now()
		defer func() { took = time.Since(began) }()
		burst := m.creation(m.objects)
		burst.wait = func(ctx context.Context) error {
			n.endLoad()
			return m.observer.wait(ctx)
		}
		return m.runBurst(ctx, burst)
	})
	if err != nil {
		return err
	}
	f.NeighborOfLoad, f.NeighborOfOperator = latencyOf(n.times[:n.loaded]), latencyOf(n.times[n.loaded:])
	f.Neighbor, f.NeighborRefused, f.NeighborFailures = latencyOf(n.times), n.refused, n.failures
	after, err := m.operator.quiet(ctx)
	if err != nil {
		return err
	}
	if err := profile(); err != nil {
		return err
	}
	f.Create = newPhase(m.objects, took, before, after)
	made := after.Requests.minus(before.Requests)
	f.Refused = float64(made.Refused) / float64(max(1, made.all()))
	return nil
}

// printNeighbors writes the table of operators with neighbors.
func (r report) printNeighbors(out io.Writer) {
	if len(r.Neighbors) == 0 {
		return
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(name string, of func(neighborFigures) string) {
		_, _ = fmt.Fprintf(table, "%s\t", name)
		for _, f := range r.Neighbors {
			_, _ = fmt.Fprintf(table, "%s\t", of(f))
		}
		_, _ = fmt.Fprintln(table)
	}
	line("", func(f neighborFigures) string { return f.Subject })
	line("objects/s", func(f neighborFigures) string { return fmt.Sprintf("%.0f", f.Create.ObjectsPerSecond) })
	line("seconds", func(f neighborFigures) string { return fmt.Sprintf("%.1f", f.Create.Seconds) })
	line("CPU per object", func(f neighborFigures) string { return micro(f.Create.CPUPerObject) })
	line("writes per object", func(f neighborFigures) string { return fmt.Sprintf("%.2f", f.Create.WritesPerObject) })
	line("refused", func(f neighborFigures) string { return fmt.Sprintf("%.2f %%", 100*f.Refused) })
	latency := func(name string, of func(neighborFigures) Latency) {
		line(name, func(f neighborFigures) string { return fmt.Sprintf("%s, %s", milli(of(f).Median), milli(of(f).P99)) })
	}
	latency("neighbor alone: p50, p99", func(f neighborFigures) Latency { return f.NeighborAlone })
	latency("beside the burst: p50, p99", func(f neighborFigures) Latency { return f.Neighbor })
	latency("until the last creation", func(f neighborFigures) Latency { return f.NeighborOfLoad })
	latency("afterwards", func(f neighborFigures) Latency { return f.NeighborOfOperator })
	line("requests: answered, refused, failed", func(f neighborFigures) string {
		return fmt.Sprintf("%d, %d, %d", f.Neighbor.Changes, f.NeighborRefused, f.NeighborFailures)
	})
	_ = table.Flush()
}
