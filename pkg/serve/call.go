package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/kopf-go/kopf/internal/conversion"
	"github.com/kopf-go/kopf/pkg/events/handlerlog"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/serve/document"
	"github.com/kopf-go/kopf/pkg/serve/protocol"
	"github.com/kopf-go/kopf/pkg/serve/worker"
)

// handler makes the calls of one handler: its methods are the functions that are declared.
type handler struct {
	program  *Program
	caller   protocol.Caller
	id       string
	function string
	field    string
	dir      string        // of the file
	timeout  time.Duration // of one call
	errors   string        // what the file says about them
	startups *startups     // of its worker; nil without one
	indices  []string      // that each call has

	// parent is the call that has declared the sub-handler; its zero value for all other handlers.
	parent parent
}

// parent is a call that has declared sub-handlers.
type parent struct {
	id      string
	session any
	isOpen  bool // it waits for them
}

func newHandler(p *Program, of *served, d *document.Declaration, caller protocol.Caller) *handler {
	function := d.Function
	if function == "" {
		function = d.ID
	}
	return &handler{
		program: p, caller: caller, id: d.ID, function: function, field: d.Field, dir: of.Dir, timeout: callTimeout(of, d), errors: d.Errors,
		startups: of.startups[d.Worker], indices: d.Indices,
	}
}

// arguments are what all calls about objects have.
type arguments interface {
	kopf.Arguments
	Patch() *patch.Patch
	SetCondition(metav1.Condition)
}

// retried are the arguments of handlers that are retried.
type retried interface {
	Retry() int
	Started() time.Time
	Runtime() time.Duration
}

// newCall returns a call without an object.
func (h *handler) newCall(kind protocol.Kind, param any) *protocol.Call {
	id := strconv.FormatUint(h.program.calls.Add(1), 10)
	return &protocol.Call{
		Version: protocol.Version, ID: id, Handler: h.id, Function: h.function, Kind: kind, Parent: h.parent.id, Field: h.field, Param: param,
		Indices: h.program.indices.entries(h.indices),
	}
}

// about returns a call about an object.
func (h *handler) about(kind protocol.Kind, a kopf.Arguments) (*protocol.Call, error) {
	call := h.newCall(kind, a.Param())
	resource := a.Resource()
	call.Resource = &protocol.Resource{Group: resource.Group, Version: resource.Version, Kind: resource.Kind, Plural: resource.Plural, Namespaced: resource.Namespaced}
	call.Reason = string(a.Reason())
	call.Namespace = a.Namespace()
	call.Name = a.Name()
	call.UID = string(a.UID())
	var err error
	call.Object, err = a.Body().JSON()
	if err != nil {
		return nil, fmt.Errorf("the object cannot be encoded: %w", err)
	}
	if w, ok := h.caller.(*worker.Worker); ok && w.KeepsMemos() {
		keepers.Of(a).add(w, call.UID, a.Memo())
	}
	return call, nil
}

// addTransition adds what has changed to a call.
func addTransition(call *protocol.Call, a kopf.Arguments) error {
	var err error
	old := a.Old()
	switch {
	case !old.Exists():
	case !old.Known():
		call.OldUnknown = true
	default:
		call.Old, err = json.Marshal(old.Any())
	}
	if current := a.New(); current.Exists() && err == nil {
		call.New, err = json.Marshal(current.Any())
	}
	if err != nil {
		return fmt.Errorf("the states of the object cannot be encoded: %w", err)
	}
	for _, item := range a.Diff() {
		call.Diff = append(call.Diff, protocol.DiffItem{Op: string(item.Op), Path: item.Path, Old: known(item.Old), New: item.New})
	}
	return nil
}

// known returns a value with null in place of what is unknown.
func known(value any) any {
	switch value := value.(type) {
	case diff.Opaque:
		return nil
	case map[string]any:
		all := make(map[string]any, len(value))
		for key, each := range value {
			all[key] = known(each)
		}
		return all
	case []any:
		all := make([]any, len(value))
		for i, each := range value {
			all[i] = known(each)
		}
		return all
	default:
		return value
	}
}

// addAttempt adds the attempt to a call.
func addAttempt(call *protocol.Call, a retried) {
	call.Retry = a.Retry()
	if started := a.Started(); !started.IsZero() {
		call.Started = &started
	}
	call.Runtime = a.Runtime().Seconds()
}

// conversation returns what happens during the call of an object.
func (h *handler) conversation(ctx context.Context, logger logr.Logger) *protocol.Conversation {
	return &protocol.Conversation{Session: h.parent.session, Within: h.parent.isOpen, Log: logTo(logger), Post: func(e protocol.PostedEvent) { post(ctx, e) }}
}

// logTo returns a function that logs lines. The settings of posting decide which of them become events of the object.
func logTo(logger logr.Logger) func(protocol.LogLine) {
	return func(line protocol.LogLine) {
		var values []any
		for key, value := range line.Values {
			values = append(values, key, value)
		}
		to := logger
		if line.LogOnly {
			to = kopf.LogOnly(logger)
		}
		switch line.Level {
		case "debug":
			to.V(1).Info(line.Message, values...)
		case "warning":
			handlerlog.Warn(to, line.Message, values...)
		case "error":
			to.Error(nil, line.Message, values...)
		default:
			to.Info(line.Message, values...)
		}
	}
}

func post(ctx context.Context, e protocol.PostedEvent) {
	switch e.Type { // the level of settings.posting is for both
	case "", "Normal":
		kopf.Info(ctx, e.Reason, e.Message)
	case "Warning":
		kopf.Warn(ctx, e.Reason, e.Message)
	default:
		kopf.Event(ctx, e.Type, e.Reason, e.Message)
	}
}

// errCallTimeout ends a call that takes too long.
var errCallTimeout = errors.New("the call takes too long")

// ask makes a call, and returns its reply. The error says how the handler is tried again.
func (h *handler) ask(ctx context.Context, call *protocol.Call, during *protocol.Conversation) (*protocol.Reply, error) {
	if call.Kind != protocol.Daemon {
		if h.parent.id == "" && isGated(call) { // the sub-handlers of a handler are inside the gate together
			if err := h.program.enter(ctx, call.Kind); err != nil {
				return nil, err
			}
			defer h.program.gate.leave()
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, h.timeout, errCallTimeout)
		defer cancel()
	}
	reply, err := h.caller.Call(ctx, call, during)
	var unavailable *protocol.TransportError
	switch {
	case err == nil:
		return reply, nil
	case errors.Is(err, errCallTimeout):
		return nil, fmt.Errorf("the call was canceled after %s, which is its callTimeout", h.timeout)
	case errors.As(err, &unavailable):
		return nil, kopf.Temporary(unavailable, unavailable.Delay)
	default:
		return nil, err
	}
}

// failure returns the error of an answer.
func failure(e *protocol.Error) error {
	if e == nil {
		return nil
	}
	err := errors.New(e.Message)
	switch {
	case e.Permanent:
		return kopf.Permanent(err)
	case e.Delay != nil:
		return kopf.Temporary(err, time.Duration(*e.Delay*float64(time.Second)))
	default:
		return err
	}
}

// apply requests what an answer wants changed, and posts its events. It returns the error of the answer.
func apply(ctx context.Context, a arguments, answer *protocol.Answer) error {
	if err := requestChanges(a, answer.Patch, answer.Operations, answer.Conditions); err != nil {
		return err
	}
	for _, event := range answer.Events {
		post(ctx, event)
	}
	return failure(answer.Error)
}

// requestChanges requests changes of the object.
func requestChanges(a arguments, merge map[string]any, operations, conditions json.RawMessage) error {
	if len(merge) > 0 {
		a.Patch().Merge(merge)
	}
	if len(operations) > 0 {
		decoded, err := jsonpatch.DecodePatch(operations)
		if err != nil {
			return fmt.Errorf("the operations of the answer are no JSON patch: %w", err)
		}
		a.Patch().Apply(func(obj *unstructured.Unstructured) error { return transform(decoded, obj) })
	}
	if len(conditions) > 0 {
		var wanted []metav1.Condition
		if err := json.Unmarshal(conditions, &wanted); err != nil {
			return fmt.Errorf("the conditions of the answer cannot be decoded: %w", err)
		}
		for _, each := range wanted {
			a.SetCondition(each)
		}
	}
	return nil
}

// transform applies a JSON patch to an object.
func transform(operations jsonpatch.Patch, obj *unstructured.Unstructured) error {
	before, err := json.Marshal(obj.Object)
	if err != nil {
		return err
	}
	after, err := operations.Apply(before)
	if err != nil {
		return fmt.Errorf("the operations of the answer cannot be applied: %w", err)
	}
	var fresh map[string]any
	if err := utiljson.Unmarshal(after, &fresh); err != nil { // with whole numbers as int64
		return fmt.Errorf("the operations of the answer make no object: %w", err)
	}
	obj.Object = fresh
	return nil
}

// change handles a change, or a part of it.
func (h *handler) change(ctx context.Context, c *kopf.Change) error {
	call, err := h.about(protocol.Change, c)
	if err == nil {
		err = addTransition(call, c)
	}
	if err != nil {
		return err
	}
	addAttempt(call, c)
	if failures := c.Failures(); len(failures) > 0 {
		call.Failures = failures
	}
	during := h.conversation(ctx, c.Logger())
	var unfinished error // of sub-handlers in the middle of the call
	during.Execute = func(ctx context.Context, subhandlers json.RawMessage, session any) error {
		unfinished = h.callSubhandlers(ctx, c, parent{call.ID, session, true}, subhandlers)
		return unfinished
	}
	reply, err := h.ask(ctx, call, during)
	if unfinished != nil && !errors.Is(unfinished, errCallTimeout) {
		if err == nil {
			_ = apply(ctx, c, reply.Answer) // its error only says that the handler has not come to its end
		}
		return unfinished
	}
	if err != nil {
		return err
	}
	if reply.Result != nil {
		c.SetResult(reply.Result)
	}
	if err := apply(ctx, c, reply.Answer); err != nil {
		return err
	}
	if len(reply.Subhandlers) == 0 {
		return nil
	}
	if reply.Forget != nil {
		defer reply.Forget()
	}
	if h.parent.id == "" {
		if err := h.program.enter(ctx, call.Kind); err != nil {
			return err
		}
		defer h.program.gate.leave()
	}
	return h.callSubhandlers(ctx, c, parent{call.ID, reply.Session, false}, reply.Subhandlers)
}

// callSubhandlers calls the sub-handlers that a call of the handler declares.
func (h *handler) callSubhandlers(ctx context.Context, c *kopf.Change, of parent, subhandlers json.RawMessage) error {
	declared, err := document.ParseSubhandlers(fmt.Sprintf("the answer of the handler %q", h.id), h.dir, subhandlers)
	if err != nil {
		return kopf.Permanent(err)
	}
	if err := document.CheckIndices(declared, h.program.indices.names()); err != nil {
		return kopf.Permanent(err)
	}
	for _, d := range declared {
		function := d.Function
		if function == "" {
			function = h.function + "/" + d.ID
		}
		part := &handler{
			program: h.program, caller: h.caller, id: h.id + "/" + d.ID, function: function, field: d.Field, dir: h.dir, timeout: h.timeout, parent: of,
			indices: d.Indices,
		}
		c.Subhandler(d.ID, part.change, changeOptions(d, append([]kopf.Option{kopf.DeclaredAt(d.Place)}, commonOptions(d)...))...)
	}
	return c.Execute(ctx)
}

// event handles a watch event.
func (h *handler) event(ctx context.Context, e *kopf.WatchEvent) error {
	call, err := h.about(protocol.Event, e)
	if err != nil {
		return err
	}
	call.Event = string(e.Type())
	reply, err := h.ask(ctx, call, h.conversation(ctx, e.Logger()))
	if err != nil {
		return err
	}
	if reply.Result != nil {
		e.SetResult(reply.Result)
	}
	return apply(ctx, e, reply.Answer)
}

// tick handles a call of a timer.
func (h *handler) tick(ctx context.Context, t *kopf.Tick) error {
	call, err := h.about(protocol.Timer, t)
	if err != nil {
		return err
	}
	addAttempt(call, t)
	if scheduled := t.Scheduled(); !scheduled.IsZero() {
		call.Scheduled = &scheduled
	}
	during := h.conversation(ctx, t.Logger())
	during.Stopped = t.Stopped()
	during.StopReason = func() string { return t.StopReason().String() }
	reply, err := h.ask(ctx, call, during)
	if err != nil {
		return err
	}
	if reply.Result != nil {
		t.SetResult(reply.Result)
	}
	return apply(ctx, t, reply.Answer)
}

// task runs a daemon.
func (h *handler) task(ctx context.Context, t *kopf.Task) error {
	call, err := h.about(protocol.Daemon, t)
	if err != nil {
		return err
	}
	addAttempt(call, t)
	call.Children = rawOf(t.Children())
	during := h.conversation(ctx, t.Logger())
	during.Stopped = t.Stopped()
	during.StopReason = func() string { return t.StopReason().String() }
	during.Changed = t.Changed()
	during.State = func() (json.RawMessage, []any) {
		data, err := t.Body().JSON()
		if err != nil { // it came as JSON
			data = nil
		}
		return data, rawOf(t.Children())
	}
	during.Write = func(ctx context.Context, edit *protocol.Edit) error {
		if err := requestChanges(t, edit.Patch, edit.Operations, edit.Conditions); err != nil {
			return err
		}
		if edit.Result != nil {
			t.SetResult(edit.Result)
		}
		return t.Write(ctx)
	}
	reply, err := h.ask(ctx, call, during)
	if err != nil {
		return err
	}
	if reply.Result != nil {
		t.SetResult(reply.Result)
	}
	return apply(ctx, t, reply.Answer)
}

func rawOf(children []*object.Body) []any {
	var all []any
	for _, child := range children {
		all = append(all, child.Raw())
	}
	return all
}

// child handles a change of a child.
func (h *handler) child(ctx context.Context, c *kopf.ChildChange) error {
	call, err := h.about(protocol.Child, c)
	if err == nil {
		err = addTransition(call, c)
	}
	if err == nil && c.Child() != nil {
		call.Child, err = c.Child().JSON()
	}
	if err != nil {
		return err
	}
	addAttempt(call, c)
	call.Children = rawOf(c.Children())
	call.Initial = c.Initial()
	call.Moved = c.Moved()
	reply, err := h.ask(ctx, call, h.conversation(ctx, c.Logger()))
	if err != nil {
		return err
	}
	return apply(ctx, c, reply.Answer)
}

// drift decides what becomes of the changes that others have made to a child.
func (h *handler) drift(ctx context.Context, c *kopf.Drift) (kopf.Resolution, error) {
	restore := kopf.RestoreDrift()
	call, err := h.about(protocol.Drifted, c)
	if err != nil {
		return restore, err
	}
	addAttempt(call, c)
	call.Drift = &protocol.Drift{EnsuredBy: c.EnsuredBy(), Kind: c.Key().GroupKind.String(), Namespace: c.Key().Namespace, Name: c.Key().Name, Deleted: c.Deleted()}
	if !c.Deleted() {
		call.Child, err = c.Child().JSON()
	}
	for _, field := range c.Fields() {
		drifted := protocol.DriftedField{Path: field.Path, Manager: field.Manager}
		if !field.Since.IsZero() {
			drifted.Since = &field.Since
		}
		err = errors.Join(err, addValue(&drifted.Wanted, field.Wanted), addValue(&drifted.Found, field.Found))
		call.Drift.Fields = append(call.Drift.Fields, drifted)
	}
	if err != nil {
		return restore, fmt.Errorf("the drift of the child cannot be encoded: %w", err)
	}
	reply, err := h.ask(ctx, call, h.conversation(ctx, c.Logger()))
	if err != nil {
		return restore, err
	}
	if err := apply(ctx, c, reply.Answer); err != nil {
		return restore, err
	}
	all, fields, err := reply.Accepts()
	switch {
	case err != nil:
		return restore, err
	case all:
		return kopf.AcceptDrift(), nil
	default:
		return kopf.AcceptFields(fields...), nil
	}
}

// addValue encodes a value if it is known and exists.
func addValue(to *json.RawMessage, value object.Value) error {
	if !value.Exists() || !value.Known() {
		return nil
	}
	var err error
	*to, err = json.Marshal(value.Any())
	return err
}

// convert converts an object from one version to another.
func (h *handler) convert(ctx context.Context, c *conversion.Call, param any) error {
	call := h.newCall(protocol.Convert, param)
	call.Namespace = c.Object.GetNamespace()
	call.Name = c.Object.GetName()
	call.UID = string(c.Object.GetUID())
	call.From = c.From
	call.To = c.To
	var err error
	call.Object, err = json.Marshal(c.Object.Object)
	if err != nil {
		return fmt.Errorf("the object cannot be encoded: %w", err)
	}
	reply, err := h.ask(ctx, call, &protocol.Conversation{Log: logTo(c.Logger)})
	if err != nil {
		return err
	}
	if err := failure(reply.Error); err != nil {
		return err
	}
	if reply.Object == nil {
		return errors.New("the answer of the conversion has no object: return the whole object of the other version")
	}
	c.Object.Object = reply.Object
	return nil
}

// children returns the children that must exist.
func (h *handler) children(ctx context.Context, c *kopf.Change) ([]client.Object, error) {
	call, err := h.about(protocol.Ensure, c)
	if err == nil {
		err = addTransition(call, c)
	}
	if err != nil {
		return nil, err
	}
	addAttempt(call, c)
	reply, err := h.ask(ctx, call, h.conversation(ctx, c.Logger()))
	if err != nil {
		return nil, err
	}
	if reply.Result != nil {
		c.SetResult(reply.Result)
	}
	if err := apply(ctx, c, reply.Answer); err != nil {
		return nil, err
	}
	var all []client.Object
	for _, child := range reply.Children {
		all = append(all, &unstructured.Unstructured{Object: child})
	}
	return all, nil
}

// review asks about a request of a user.
func (h *handler) review(ctx context.Context, kind protocol.Kind, a *kopf.Admission) error {
	call, err := h.about(kind, a)
	if err == nil {
		err = addTransition(call, a)
	}
	if err != nil {
		return err
	}
	call.Review = &protocol.Review{Operation: string(a.Operation()), Subresource: a.Subresource(), DryRun: a.DryRun(), UserInfo: a.UserInfo()}
	reply, err := h.ask(ctx, call, &protocol.Conversation{Log: logTo(a.Logger())})
	if err != nil {
		return err
	}
	for _, warning := range reply.Warnings {
		a.Warn(warning)
	}
	if e := reply.Error; e != nil && e.Code != 0 {
		return kopf.Reject(e.Message, e.Code)
	}
	if kind == protocol.Validate && (len(reply.Patch) > 0 || len(reply.Operations) > 0) {
		return errors.New("the answer of a validating handler has a patch: declare the handler with mutate")
	}
	return apply(ctx, a, reply.Answer)
}

func (h *handler) validate(ctx context.Context, a *kopf.Admission) error {
	return h.review(ctx, protocol.Validate, a)
}

func (h *handler) mutate(ctx context.Context, a *kopf.Admission) error {
	return h.review(ctx, protocol.Mutate, a)
}

// act makes a call that is about no object, and returns its result.
func (h *handler) act(ctx context.Context, kind protocol.Kind, a *kopf.Activity) (any, error) {
	call := h.newCall(kind, a.Param())
	addAttempt(call, a)
	reply, err := h.ask(ctx, call, &protocol.Conversation{Log: logTo(a.Logger())})
	if err != nil {
		return nil, err
	}
	return reply.Result, failure(reply.Error)
}

func (h *handler) startup(ctx context.Context, s *kopf.Startup) error {
	_, err := h.act(ctx, protocol.Startup, &s.Activity)
	if h.startups != nil && (err == nil || h.ignores(err)) {
		h.startups.add(startup{h, s.Param(), s.Logger()})
	}
	return err
}

// ignores reports whether the operator continues after an error as after a success.
func (h *handler) ignores(err error) bool {
	var temporary *kopf.TemporaryError
	var permanent *kopf.PermanentError
	return h.errors == "ignored" && !errors.As(err, &temporary) && !errors.As(err, &permanent)
}

func (h *handler) cleanup(ctx context.Context, a *kopf.Activity) error {
	_, err := h.act(ctx, protocol.Cleanup, a)
	return err
}

func (h *handler) probe(ctx context.Context, a *kopf.Activity) (any, error) {
	return h.act(ctx, protocol.Probe, a)
}
