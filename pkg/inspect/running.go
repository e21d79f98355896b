package inspect

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/internal/plural"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/shards"
	"github.com/kopf-go/kopf/pkg/shards/ring"
)

// Endpoint is where a running operator says what it is doing.
type Endpoint struct {
	// URL is that of its secure metrics, without a path: "https://127.0.0.1:8443".
	URL string
	// Token is a bearer token of the cluster. The credentials of the user are never sent.
	Token string
}

// Running is an operator that says what it is doing: at an Endpoint, or in this process.
type Running interface {
	// Activity returns what the operator is doing for an object, whose uid can be unknown. Without the key, it is about all
	// objects.
	Activity(ctx context.Context, key object.Key, uid types.UID) (*reconcile.Activity, error)
	// Place says where it runs.
	Place() string
}

// Now is the activity of a running operator.
type Now struct {
	reconcile.Activity

	Endpoint string `json:"endpoint"`
	// Findings say it as sentences.
	Findings []string `json:"findings"`
}

// AddNow asks a running operator what it is doing for an object, and adds it to the explanation.
func (c *Cluster) AddNow(ctx context.Context, t Target, e *Explanation, at Running) error {
	found, obj, err := c.get(ctx, t)
	if err != nil {
		return err
	}
	key := object.Key{Resource: found.String(), NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
	activity, err := at.Activity(ctx, key, obj.GetUID())
	if err != nil {
		return err
	}
	now := &Now{Activity: *activity, Endpoint: at.Place()}
	now.Findings = findingsOf(&now.Activity, obj.GetResourceVersion())
	e.Now = now
	e.Notes = slices.DeleteFunc(e.Notes, func(note string) bool { return strings.HasPrefix(note, noteRunning) })
	e.correct(&now.Activity)
	return nil
}

// correct replaces what is believed about the flags of the operator by what it says.
func (e *Explanation) correct(a *reconcile.Activity) {
	e.isRunning = true
	if !handles(a) { // it does not know what others do
		e.qualify()
		return
	}
	e.stopped = nil
	e.mayStop = nil
	e.refuses = nil
	e.mayRefuse = nil
	if a.Version != "" {
		e.outside = nil
		e.unselected = nil
		if !a.Handling && a.From.IsZero() { // it would retry
			e.Failing = ""
		}
	}
	switch {
	case !a.Paused:
		e.pauses = nil
		e.mayPause = nil
	case len(e.pauses) == 0:
		e.pauses = append([]string{"The running operator is paused by another one."}, e.mayPause...)
		e.mayPause = nil
	}
	e.qualify()
}

// handles reports whether the process that has answered handles the object.
func handles(a *reconcile.Activity) bool { return a.Leading && (a.Shard == nil || a.Shard.Handling) }

// maxActivity limits the answer of an operator.
const (
	maxActivity    = 1 << 20
	askingDeadline = 10 * time.Second
)

// Place returns the URL.
func (at Endpoint) Place() string { return at.URL }

// Activity asks the operator.
func (at Endpoint) Activity(ctx context.Context, key object.Key, uid types.UID) (*reconcile.Activity, error) {
	query := url.Values{}
	if key.Resource != "" {
		query = url.Values{"resource": {key.Resource}, "namespace": {key.Namespace}, "name": {key.Name}, "uid": {string(uid)}}
	}
	activity := &reconcile.Activity{}
	return activity, at.get(ctx, query, activity)
}

// get sends a request to the operator.
func (at Endpoint) get(ctx context.Context, query url.Values, into *reconcile.Activity) error {
	where, err := url.Parse(at.URL)
	if err != nil || where.Scheme != "https" || where.Host == "" {
		return fmt.Errorf("%q is no endpoint of secure metrics: use one such as https://127.0.0.1:8443", at.URL)
	}
	where.Path = reconcile.ActivityPath
	where.RawQuery = query.Encode()
	ctx, cancel := context.WithTimeout(ctx, askingDeadline)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, where.String(), nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+at.Token)
	// The certificate is self-signed. The API server leads a forwarded port to the pod.
	isLocal := net.ParseIP(where.Hostname()).IsLoopback() || where.Hostname() == "localhost"
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: isLocal}}
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("the running operator cannot be asked: %w", err)
	}
	defer func() { _ = answer.Body.Close() }() // only read
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxActivity))
	switch {
	case err != nil:
		return fmt.Errorf("the answer of the running operator cannot be read: %w", err)
	case answer.StatusCode != http.StatusOK:
		return refusedBy(at.URL, answer.StatusCode, string(text))
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s is no endpoint of an operator: %w", at.URL, err)
	}
	return nil
}

// refusedBy explains why the operator does not answer.
func refusedBy(endpoint string, status int, text string) error {
	switch status {
	case http.StatusUnauthorized:
		return errors.New("the operator does not accept the token: get one by kubectl create token SERVICEACCOUNT, and pass its file by --token-file")
	case http.StatusForbidden:
		return fmt.Errorf("the account of the token may not ask the operator: bind it to a ClusterRole with the rule {nonResourceURLs: [%s], verbs: [get]}", reconcile.ActivityPath)
	case http.StatusNotFound:
		return fmt.Errorf("%s does not say what it is doing: only operators with secure metrics do (--metrics and --metrics-secure)", endpoint)
	default:
		return fmt.Errorf("the running operator does not answer: %d %s", status, strings.TrimSpace(text))
	}
}

// findingsOf says what an operator is doing for an object with a version.
func findingsOf(a *reconcile.Activity, version string) []string {
	var all []string
	add := func(isSo bool, format string, args ...any) {
		if isSo {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	since := func(t time.Time) string { return (&subject{now: a.At}).at(t) }
	isHere := handles(a)
	add(!a.Leading, "This replica is on standby: it handles nothing, and does not know what the leader does.")
	if a.Leading && a.Shard != nil {
		shard := a.Shard
		add(isHere, "The object is in shard %d, which this replica, %s, handles.", shard.Number, a.Replica)
		add(!isHere, "The object is in shard %d, which this replica, %s, does not handle: it does not know what others do.", shard.Number, a.Replica)
		add(!shard.Draining.IsZero(), "The replica gives the shard up since %s: it calls no more handlers, and another replica takes over when those that run have returned.", since(shard.Draining))
		add(shard.Lost, "The replica has lost the lease of the shard: the handlers are canceled, and another replica continues.")
	}
	add(a.Leading && a.Paused, "The operator is paused by another one.")
	add(!a.Ready, "The operator is not ready: it has not seen all objects yet.")
	add(a.Version == "" && (isHere || !a.Leading), "The operator does not know the object: it does not watch it, or has not seen it yet.")
	add(isHere && a.Version != "" && a.Version != version, "The operator has seen the version %s of the object, and the API server has the version %s.", a.Version, version)
	for _, call := range a.Calls {
		add(true, "The handler %s is running since %s.", call.Handler, since(call.Since))
	}
	for _, id := range a.Limited {
		add(true, "The handler %s waits for a slot, because of its kopf.Limit or of Settings.Execution.MaxCalls.", id)
	}
	for _, b := range a.Background {
		add(true, "The %s %s %s.", b.Kind, b.Handler, doing[b.State])
	}
	add(a.Contention.Duration > 0, "Writes to the object wait for another %s, because another client keeps undoing them.", a.Contention.Round(time.Second))
	isWaiting := !a.Handling && !a.From.IsZero()
	add(a.Handling && len(a.Calls) == 0, "The operator is looking at the object.")
	add(isWaiting && a.From.After(a.At), "The operator looks at the object again at %s, if nothing happens before.", since(a.From))
	add(isWaiting && !a.From.After(a.At), "The object waits for a worker since %s.", since(a.From))
	add(isHere && a.Version != "" && !a.Handling && !isWaiting, "Nothing is due for the object.")
	oldest := ""
	if a.Queued > 0 {
		oldest = fmt.Sprintf(", the first for %s", a.QueueAge.Round(time.Second))
	}
	add(a.Leading, "For all objects: %s running, %s for a slot, and %s for a worker%s.", plural.Of(a.Running, "handler is", "handlers are"),
		plural.Of(a.Waiting, "waits", "wait"), plural.Of(a.Queued, "object waits", "objects wait"), oldest)
	return all
}

// doing says what a daemon or a timer is doing.
var doing = map[string]string{
	"waiting": "waits for its next call, or for a change of the object", "running": "is running",
	"abandoned": "was stopped and has not returned: it is abandoned", "ended": "has ended, and is not called again",
}

// Pod is a pod with a port.
type Pod struct{ Namespace, Name, Port string }

// otherwise says how to ask an operator whose pod is not found.
const otherwise = "forward the port of the metrics of its pod yourself, and set --endpoint https://127.0.0.1:PORT"

// ReplicaOf returns the pod of the replica that handles an object, with the port of its metrics: that of the leader, or that of
// the holder of the object's shard. Without an object, it is that of the leader.
func (c *Cluster) ReplicaOf(ctx context.Context, t Target, namespace string) (Pod, error) {
	replicas := c.Settings.WithDefaults().Replicas
	namespace = cmp.Or(replicas.LeaseNamespace, namespace)
	lease, err := c.leases(namespace).Get(ctx, replicas.LeaseName, metav1.GetOptions{})
	if err != nil {
		return Pod{}, fmt.Errorf("the leader is unknown without the lease %q in the namespace %q (set --operator-namespace, or, for an operator without leader election, %s): %w", replicas.LeaseName, namespace, otherwise, err)
	}
	holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	if holder == "" {
		return Pod{}, fmt.Errorf("no operator holds the lease %q in the namespace %q: none is running", replicas.LeaseName, namespace)
	}
	division, isShared := shards.Parse(holder)
	if !isShared {
		return c.podOf(ctx, namespace, holder, "the leader "+holder)
	}
	if t.Name == "" {
		return Pod{}, fmt.Errorf("replicas with %s hold the lease %q in the namespace %q, and each knows what it does itself: choose one, and %s", division, replicas.LeaseName, namespace, otherwise)
	}
	_, obj, err := c.get(ctx, t)
	if err != nil {
		return Pod{}, err
	}
	shard := division.Of(obj.GetNamespace(), obj.GetUID())
	name := ring.ShardLease(replicas.LeaseName, shard)
	lease, err = c.leases(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return Pod{}, fmt.Errorf("the replica that handles the shard %d of the object is unknown without the lease %q in the namespace %q: %w", shard, name, namespace, err)
	}
	holder, _, _ = unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	if holder == "" {
		return Pod{}, fmt.Errorf("no replica holds the lease %q in the namespace %q, of the shard %d of the object: another one takes it over, or none is running", name, namespace, shard)
	}
	return c.podOf(ctx, namespace, holder, fmt.Sprintf("the replica %s, which holds the shard %d of the object,", holder, shard))
}

// podOf returns the pod of a replica, which errors describe, with the port of its metrics.
func (c *Cluster) podOf(ctx context.Context, namespace, identity, described string) (Pod, error) {
	pod := Pod{Namespace: namespace}
	pod.Name, _, _ = strings.Cut(identity, "_")
	of, err := c.objects.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		return Pod{}, fmt.Errorf("%s is no pod in the namespace %q (%s): %w", described, namespace, otherwise, err)
	}
	_, pod.Port, _ = net.SplitHostPort(c.Settings.WithDefaults().Metrics.Address)
	if pod.Port == "" {
		pod.Port = metricsPort(of)
	}
	if pod.Port == "" {
		return Pod{}, fmt.Errorf("the pod %s has no port with the name metrics: %s", pod.Name, otherwise)
	}
	return pod, nil
}

// metricsPort returns the port of a pod with the name metrics, or "".
func metricsPort(pod *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
	for _, container := range containers {
		of, _ := container.(map[string]any)
		ports, _, _ := unstructured.NestedSlice(of, "ports")
		for _, each := range ports {
			port, _ := each.(map[string]any)
			if number, ok := port["containerPort"].(int64); ok && port["name"] == "metrics" {
				return strconv.FormatInt(number, 10)
			}
		}
	}
	return ""
}

// addLeader says who holds the lease of the operator, if its namespace is known, and who holds that of the object's shard.
func (c *Cluster) addLeader(ctx context.Context, s *subject, e *Explanation) {
	replicas := c.Settings.WithDefaults().Replicas
	name := fmt.Sprintf("the lease %s/%s", replicas.LeaseNamespace, replicas.LeaseName)
	if replicas.LeaseNamespace == "" || c.IsRunning && !c.HasLeases() {
		return
	}
	e.isLeaseKnown = true
	lease, err := c.lease(ctx, replicas.LeaseNamespace, replicas.LeaseName)
	switch {
	case apierrors.IsNotFound(err):
		e.Leader = []string{fmt.Sprintf("There is no %s: no operator that elects its leader by this lease has run there. In a manager of another program, the lease is the one of its LeaderElectionID.", name[len("the "):])}
		return
	case err != nil:
		e.Leader = []string{fmt.Sprintf("Which operator leads is unknown: %v.", err)}
		return
	}
	holder, until := HolderOf(lease, replicas.LeaseDuration)
	division, isShared := shards.Parse(holder)
	kind := "leader election"
	if isShared || replicas.Shards > 0 {
		kind = "shards"
	}
	stopped := &e.mayStop
	unseen := fmt.Sprintf(" An operator without %s would not be seen here.", kind)
	if replicas.LeaderElection || replicas.Shards > 0 {
		stopped = &e.stopped
		unseen = ""
	}
	switch {
	case holder == "":
		*stopped = []string{fmt.Sprintf("No operator holds %s: none with %s is running.%s", name, kind, unseen)}
	case until.Before(s.now):
		*stopped = []string{fmt.Sprintf("The lease of %s, %s, has expired: %s. No operator with %s is running, or none can renew it.%s", holder, name[len("the lease "):], s.at(until), kind, unseen)}
	case isShared:
		e.isShared = true
		shard := division.Of(s.object.GetNamespace(), s.object.GetUID())
		e.Leader = []string{fmt.Sprintf("Replicas with %s hold %s. The object is in shard %d.", division, name, shard)}
		c.addHolder(ctx, s, shard, replicas, e)
	default:
		e.isRunning = true
		e.Leader = []string{fmt.Sprintf("%s holds %s: it leads, and other replicas, and other operators with this lease, stand by and call no handlers.", holder, name)}
	}
}

// HasLeases reports whether the replicas of the operator have leases, according to its settings.
func (c *Cluster) HasLeases() bool {
	return c.Settings.Replicas.LeaderElection || c.Settings.Replicas.Shards > 0
}

// addHolder says who holds the lease of the object's shard.
func (c *Cluster) addHolder(ctx context.Context, s *subject, shard int, replicas settings.Replicas, e *Explanation) {
	name := ring.ShardLease(replicas.LeaseName, shard)
	lease, err := c.lease(ctx, replicas.LeaseNamespace, name)
	if err != nil && !apierrors.IsNotFound(err) {
		e.isRunning = true
		e.Leader = append(e.Leader, fmt.Sprintf("Which replica holds it is unknown: %v.", err))
		return
	}
	var holder string
	var until time.Time
	if err == nil {
		holder, until = HolderOf(lease, replicas.LeaseDuration)
	}
	switch {
	case holder == "":
		e.stopped = []string{fmt.Sprintf("No replica holds the lease %s/%s of the object's shard: one takes it as soon as it can.", replicas.LeaseNamespace, name)}
	case until.Before(s.now):
		e.stopped = []string{fmt.Sprintf("The lease of %s, %s/%s, has expired: %s. Another replica takes over the object's shard as soon as it can.", holder, replicas.LeaseNamespace, name, s.at(until))}
	default:
		e.isRunning = true
		e.Leader = append(e.Leader, fmt.Sprintf("%s holds the lease %s/%s of this shard: it calls the handlers, and other replicas call none for the object.", holder, replicas.LeaseNamespace, name))
	}
}

// lease reads a lease.
func (c *Cluster) lease(ctx context.Context, namespace, name string) (*coordinationv1.Lease, error) {
	found, err := c.leases(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	lease := &coordinationv1.Lease{}
	return lease, runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, lease)
}

// HolderOf returns who holds a lease, and until when without a renewal: for the duration, unless the
// lease has one. The holder is empty if there is none.
func HolderOf(lease *coordinationv1.Lease, duration time.Duration) (holder string, until time.Time) {
	spec := lease.Spec
	if spec.HolderIdentity == nil || spec.RenewTime == nil {
		return "", time.Time{}
	}
	if spec.LeaseDurationSeconds != nil {
		duration = time.Duration(*spec.LeaseDurationSeconds) * time.Second
	}
	return *spec.HolderIdentity, spec.RenewTime.Add(duration)
}
