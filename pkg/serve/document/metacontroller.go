package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kopf-go/kopf/internal/similar"
)

// The kinds of Metacontroller, and their version.
const (
	Composite = "CompositeController"
	Decorator = "DecoratorController"

	// MetacontrollerGroup is the API group.
	MetacontrollerGroup = "metacontroller.k8s.io"

	metacontrollerVersion = MetacontrollerGroup + "/v1alpha1"
)

// Controller is a CompositeController or a DecoratorController of Metacontroller.
type Controller struct {
	Place string
	// Object is the controller as its hooks see it. Its numbers are those of JSON.
	Object map[string]any
	// Kind is Composite or Decorator.
	Kind string
	Name string
	// Parents are the resources whose objects the hooks are called for. A composite has one.
	Parents []ParentRule
	// Children are the resources of children, or of attachments.
	Children []ChildRule
	// Sync, Finalize, and Customize are nil if they are not given.
	Sync, Finalize, Customize *Hook
	// GenerateSelector gives the children a label with the uid of their parent, by which they are selected.
	GenerateSelector bool
	// ResyncPeriod is 0 if it is not given.
	ResyncPeriod time.Duration

	endpoints []endpoint
}

// ParentRule selects objects.
type ParentRule struct {
	APIVersion, Resource string
	Labels, Annotations  labels.Selector
	IgnoreStatusChanges  bool
}

// ChildRule is a resource of children, and how they are updated: OnDelete, Recreate, or InPlace.
type ChildRule struct {
	APIVersion, Resource string
	Method               string
}

// The methods by which children are updated.
const (
	OnDelete = "OnDelete"
	Recreate = "Recreate"
	InPlace  = "InPlace"
)

// Hook is a webhook.
type Hook struct {
	URL     string
	Timeout time.Duration // of one call
	// Uniform names all objects of namespaces with their namespace: version v2 of Metacontroller's hooks.
	Uniform bool
	// Strict refuses unknown fields in answers.
	Strict bool
	// Connection is nil for a hook without certificates and credentials.
	Connection *Connection
}

// defaultHookTimeout is Metacontroller's.
const defaultHookTimeout = 10 * time.Second

// documents returns the roots of the documents of a file that are not empty.
func documents(path string, data io.Reader) ([]*yaml.Node, error) {
	var roots []*yaml.Node
	decoder := yaml.NewDecoder(data)
	for {
		var root yaml.Node
		err := decoder.Decode(&root)
		switch {
		case errors.Is(err, io.EOF) && len(roots) == 0:
			return nil, fmt.Errorf("%s: the file is empty: it begins with kopf: %s", path, Version)
		case errors.Is(err, io.EOF):
			return roots, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if len(root.Content) > 0 && root.Content[0].Tag != "!!null" {
			roots = append(roots, root.Content[0])
		}
	}
}

// lookup returns the value of a key, or nil.
func lookup(n *yaml.Node, key string) *yaml.Node {
	if n = resolve(n); n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				return resolve(n.Content[i+1])
			}
		}
	}
	return nil
}

// isObject reports whether a document is an object of Kubernetes.
func isObject(n *yaml.Node) bool {
	return lookup(n, "apiVersion") != nil && lookup(n, "kind") != nil
}

// objectsOf returns the objects of a document: those of a list, as kubectl get prints it, or the object.
func objectsOf(n *yaml.Node) []*yaml.Node {
	items := lookup(n, "items")
	if lookup(n, "kind").Value != "List" || items == nil {
		return []*yaml.Node{n}
	}
	return slices.DeleteFunc(slices.Clone(items.Content), func(item *yaml.Node) bool { return !isObject(item) })
}

// ParseController decodes a controller of the cluster.
func ParseController(object map[string]any) (*Controller, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("the controller cannot be encoded: %w", err)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil || len(root.Content) == 0 {
		return nil, fmt.Errorf("the controller cannot be decoded: %w", err)
	}
	r := &reader{prefix: "in the cluster"}
	c := decodeObject(r, root.Content[0])
	if c != nil {
		c.Place = fmt.Sprintf("%s of the cluster", c)
	}
	return c, r.mistakes()
}

// Cluster is the File of the document of a cluster.
const Cluster = "the cluster"

// OfCluster returns the document of controllers of the cluster.
func OfCluster(controllers []*Controller) *Document {
	return &Document{File: Cluster, Dir: ".", Limits: defaultLimits(), Controllers: controllers}
}

// decodeObject decodes an object of Kubernetes. It returns nil for what is no controller: that is left to kubectl.
func decodeObject(r *reader, n *yaml.Node) *Controller {
	version, kind := lookup(n, "apiVersion"), lookup(n, "kind")
	group, _, _ := strings.Cut(version.Value, "/")
	kinds := []string{Composite, Decorator}
	if len(similar.Words(group, []string{MetacontrollerGroup}))+len(similar.Words(kind.Value, kinds)) == 0 {
		return nil
	}
	switch {
	case !slices.Contains(kinds, kind.Value):
		r.problem(kind, "the kind %s is unknown%s", kind.Value, suggest(kind.Value, kinds, "it must be CompositeController or DecoratorController"))
		return nil
	case version.Value != metacontrollerVersion:
		r.problem(version, "the apiVersion of a %s is %s, not %s", kind.Value, metacontrollerVersion, version.Value)
		return nil
	}
	c := &Controller{Place: r.place(n), Kind: kind.Value}
	decodeWords(r, n, controllerWords, c, "the "+c.Kind)
	switch {
	case c.Name == "":
		r.problem(n, "the %s has no name: add metadata: {name: …}", c.Kind)
	case lookup(n, "spec") == nil:
		r.problem(n, "%s has no spec", c)
	}
	c.Object, _ = r.value(n).(map[string]any)
	c.complete()
	return c
}

// complete adds to the object what the API server and Metacontroller add to it.
func (c *Controller) complete() {
	c.Object["status"] = map[string]any{}
	spec, _ := c.Object["spec"].(map[string]any)
	hooks, _ := spec["hooks"].(map[string]any)
	for _, each := range hooks {
		if hook, isMapping := each.(map[string]any); isMapping && hook["version"] == nil {
			hook["version"] = "v1"
		}
	}
}

// String names the controller.
func (c *Controller) String() string { return fmt.Sprintf("the %s %q", c.Kind, c.Name) }

// ignore accepts any value: it has no effect here, or is a part of the object only.
func ignore[T any](*reader, *yaml.Node, *T) {}

var controllerWords = words[Controller]{
	{name: "apiVersion", set: ignore[Controller]},
	{name: "kind", set: ignore[Controller]},
	{name: "metadata", set: func(r *reader, n *yaml.Node, c *Controller) {
		if name := lookup(n, "name"); name != nil {
			c.Name = r.nonEmpty(name)
		}
	}},
	{name: "status", set: ignore[Controller]},
	{name: "spec", set: func(r *reader, n *yaml.Node, c *Controller) {
		known := compositeWords
		if c.Kind == Decorator {
			known = decoratorWords
		}
		given := decodeWords(r, n, known, c, "the spec of the "+c.Kind)
		for _, hook := range []*Hook{c.Sync, c.Finalize, c.Customize} {
			if hook != nil && hook.Connection == nil {
				hook.Connection = c.endpointOf(hook.URL)
			}
		}
		switch {
		case r.failed():
		case len(c.Parents) == 0 && c.Kind == Composite:
			r.problem(n, "the spec has no parentResource: add parentResource: {apiVersion: example.com/v1, resource: examples}")
		case len(c.Parents) == 0:
			r.problem(n, "the spec has no resources: add resources: [{apiVersion: apps/v1, resource: deployments}]")
		case !given["hooks"] || c.Sync == nil:
			r.problem(n, "the spec has no sync hook: add hooks: {sync: {webhook: {url: …}}}")
		}
	}},
}

// specWords are the words that the specs of both kinds have.
var specWords = words[Controller]{
	{name: "hooks", set: func(r *reader, n *yaml.Node, c *Controller) {
		r.each(n, "hooks", func(key, value *yaml.Node) {
			hook := decodeHook(r, key.Value, value)
			switch key.Value {
			case "sync":
				c.Sync = hook
			case "finalize":
				c.Finalize = hook
			case "customize":
				c.Customize = hook
			case "preUpdateChild", "postUpdateChild":
				r.problem(key, "the hook %s is not supported: Metacontroller does not call it, either", key.Value)
			default:
				r.problem(key, "the hook %s is unknown%s", key.Value, suggest(key.Value, []string{"sync", "finalize", "customize"}, ""))
			}
		})
	}},
	{name: "resyncPeriodSeconds", set: func(r *reader, n *yaml.Node, c *Controller) {
		c.ResyncPeriod = max(time.Second, time.Duration(r.number(n, 0))*time.Second)
	}},
	{name: "endpointConfigs", set: func(r *reader, n *yaml.Node, c *Controller) {
		for _, item := range r.list(n, "endpointConfigs") {
			e := endpoint{}
			given := decodeWords(r, item, endpointWords, &e, "an entry of endpointConfigs")
			if !given["host"] {
				r.problem(item, "an entry of endpointConfigs needs a host")
			}
			r.checkConnection(item, &e.connection)
			c.endpoints = append(c.endpoints, e)
		}
	}},
}

var compositeWords = append(words[Controller]{
	{name: "parentResource", set: func(r *reader, n *yaml.Node, c *Controller) {
		c.Parents = append(c.Parents, decodeParent(r, n, "parentResource", parentWords))
	}},
	{name: "childResources", set: func(r *reader, n *yaml.Node, c *Controller) { c.Children = decodeChildren(r, n, "childResources") }},
	{name: "generateSelector", set: func(r *reader, n *yaml.Node, c *Controller) { c.GenerateSelector = r.flag(n) }},
}, specWords...)

var decoratorWords = append(words[Controller]{
	{name: "resources", set: func(r *reader, n *yaml.Node, c *Controller) {
		for _, item := range r.list(n, "resources") {
			rule := decodeParent(r, item, "an entry of resources", decoratedWords)
			isSame := func(other ParentRule) bool {
				return other.APIVersion == rule.APIVersion && other.Resource == rule.Resource
			}
			if slices.ContainsFunc(c.Parents, isSame) {
				r.problem(item, "resources has %s of %s twice", rule.Resource, rule.APIVersion)
			}
			c.Parents = append(c.Parents, rule)
		}
	}},
	{name: "attachments", set: func(r *reader, n *yaml.Node, c *Controller) { c.Children = decodeChildren(r, n, "attachments") }},
}, specWords...)

// checkRule reports a rule without a resource.
func (r *reader) checkRule(n *yaml.Node, what string, given map[string]bool) {
	if !given["apiVersion"] || !given["resource"] {
		r.problem(n, "%s needs an apiVersion and a resource: {apiVersion: apps/v1, resource: deployments}", what)
	}
}

func decodeParent(r *reader, n *yaml.Node, what string, known words[ParentRule]) ParentRule {
	rule := ParentRule{Labels: labels.Everything(), Annotations: labels.Everything()}
	given := decodeWords(r, n, known, &rule, what)
	r.checkRule(n, what, given)
	return rule
}

func decodeChildren(r *reader, n *yaml.Node, what string) []ChildRule {
	var all []ChildRule
	for _, item := range r.list(n, what) {
		rule := ChildRule{Method: OnDelete}
		given := decodeWords(r, item, childWords, &rule, "an entry of "+what)
		r.checkRule(item, "an entry of "+what, given)
		isSame := func(other ChildRule) bool {
			return other.APIVersion == rule.APIVersion && other.Resource == rule.Resource
		}
		if slices.ContainsFunc(all, isSame) {
			r.problem(item, "%s has %s of %s twice", what, rule.Resource, rule.APIVersion)
		}
		all = append(all, rule)
	}
	return all
}

var commonParentWords = words[ParentRule]{
	{name: "apiVersion", set: func(r *reader, n *yaml.Node, p *ParentRule) { p.APIVersion = r.nonEmpty(n) }},
	{name: "resource", set: func(r *reader, n *yaml.Node, p *ParentRule) { p.Resource = r.nonEmpty(n) }},
	{name: "ignoreStatusChanges", set: func(r *reader, n *yaml.Node, p *ParentRule) { p.IgnoreStatusChanges = r.flag(n) }},
	{name: "labelSelector", set: func(r *reader, n *yaml.Node, p *ParentRule) { p.Labels = r.selector(n, "labelSelector", "matchLabels") }},
}

var parentWords = append(words[ParentRule]{
	{name: "revisionHistory", set: ignore[ParentRule]}, // of rolling updates
}, commonParentWords...)

var decoratedWords = append(words[ParentRule]{
	{name: "annotationSelector", set: func(r *reader, n *yaml.Node, p *ParentRule) {
		p.Annotations = r.selector(n, "annotationSelector", "matchAnnotations")
	}},
}, commonParentWords...)

var childWords = words[ChildRule]{
	{name: "apiVersion", set: func(r *reader, n *yaml.Node, c *ChildRule) { c.APIVersion = r.nonEmpty(n) }},
	{name: "resource", set: func(r *reader, n *yaml.Node, c *ChildRule) { c.Resource = r.nonEmpty(n) }},
	{name: "updateStrategy", set: func(r *reader, n *yaml.Node, c *ChildRule) { decodeWords(r, n, strategyWords, c, "updateStrategy") }},
}

var strategyWords = words[ChildRule]{
	{name: "method", set: func(r *reader, n *yaml.Node, c *ChildRule) {
		if method := r.text(n); method == "RollingRecreate" || method == "RollingInPlace" {
			r.problem(n, "the method %s is not supported: use %s, or let the hook return only some of the changed children at a time", method, strings.TrimPrefix(method, "Rolling"))
			return
		}
		c.Method = r.choice(n, OnDelete, Recreate, InPlace)
	}},
	{name: "statusChecks", set: ignore[ChildRule]}, // of rolling updates
}

// selector returns a selector. The keys of annotations are in matchAnnotations.
func (r *reader) selector(n *yaml.Node, what, matchWord string) labels.Selector {
	var of metav1.LabelSelector
	decodeWords(r, n, words[metav1.LabelSelector]{
		{name: matchWord, set: func(r *reader, n *yaml.Node, s *metav1.LabelSelector) {
			s.MatchLabels = map[string]string{}
			r.each(n, matchWord, func(key, value *yaml.Node) { s.MatchLabels[key.Value] = r.text(value) })
		}},
		{name: "matchExpressions", set: func(r *reader, n *yaml.Node, s *metav1.LabelSelector) {
			for _, item := range r.list(n, "matchExpressions") {
				var one metav1.LabelSelectorRequirement
				decodeWords(r, item, expressionWords, &one, "an entry of matchExpressions")
				s.MatchExpressions = append(s.MatchExpressions, one)
			}
		}},
	}, &of, what)
	selector, err := metav1.LabelSelectorAsSelector(&of)
	if err != nil && !r.failed() {
		r.problem(n, "the %s is not valid: %v", what, err)
	}
	return selector
}

var expressionWords = words[metav1.LabelSelectorRequirement]{
	{name: "key", set: func(r *reader, n *yaml.Node, q *metav1.LabelSelectorRequirement) { q.Key = r.nonEmpty(n) }},
	{name: "operator", set: func(r *reader, n *yaml.Node, q *metav1.LabelSelectorRequirement) {
		q.Operator = metav1.LabelSelectorOperator(r.choice(n, "In", "NotIn", "Exists", "DoesNotExist"))
	}},
	{name: "values", set: func(r *reader, n *yaml.Node, q *metav1.LabelSelectorRequirement) {
		for _, item := range r.list(n, "values") {
			q.Values = append(q.Values, r.text(item))
		}
	}},
}

// webhook is what a hook is decoded from.
type webhook struct {
	hook           Hook
	path           string
	name, space    string // of the service
	port           int
	protocol, mode string
	hasService     bool
	connection     Connection
}

// decodeHook decodes a hook. It returns nil if there is no webhook.
func decodeHook(r *reader, name string, n *yaml.Node) *Hook {
	w := &webhook{hook: Hook{Timeout: defaultHookTimeout}, port: 80, protocol: "http"}
	given := decodeWords(r, n, hookWords, w, "the hook "+name)
	if !given["webhook"] {
		r.problem(n, "the hook %s has no webhook: add webhook: {url: …}", name)
		return nil
	}
	switch {
	case w.hook.URL != "" || r.failed():
	case !w.hasService || w.path == "":
		r.problem(n, "the webhook of %s needs a url, or a service and a path", name)
	case w.name == "" || w.space == "":
		r.problem(n, "the service of %s needs a name and a namespace", name)
	default:
		w.hook.URL = w.protocol + "://" + w.name + "." + w.space + ":" + strconv.Itoa(w.port) + w.path
	}
	w.hook.Strict = w.mode == "strict" || w.mode == "" && w.hook.Uniform
	if w.connection != (Connection{}) {
		r.checkConnection(n, &w.connection)
		w.hook.Connection = &w.connection
	}
	return &w.hook
}

var hookWords = words[webhook]{
	{name: "version", set: func(r *reader, n *yaml.Node, w *webhook) { w.hook.Uniform = r.choice(n, "v1", "v2") == "v2" }},
	{name: "webhook", set: func(r *reader, n *yaml.Node, w *webhook) { decodeWords(r, n, webhookWords, w, "the webhook") }},
}

var webhookWords = append(words[webhook]{
	{name: "url", set: func(r *reader, n *yaml.Node, w *webhook) { w.hook.URL = r.nonEmpty(n) }},
	{name: "path", set: func(r *reader, n *yaml.Node, w *webhook) { w.path = r.nonEmpty(n) }},
	{name: "timeout", set: func(r *reader, n *yaml.Node, w *webhook) { w.hook.Timeout = r.positive(n) }},
	{name: "service", set: func(r *reader, n *yaml.Node, w *webhook) {
		w.hasService = true
		decodeWords(r, n, serviceWords, w, "the service")
	}},
	{name: "responseUnMarshallMode", set: func(r *reader, n *yaml.Node, w *webhook) { w.mode = r.choice(n, "loose", "strict") }},
	{name: "etag", set: ignore[webhook]}, // every answer is asked for
}, connectionWordsOf(func(w *webhook) *Connection { return &w.connection })...)

var serviceWords = words[webhook]{
	{name: "name", set: func(r *reader, n *yaml.Node, w *webhook) { w.name = r.nonEmpty(n) }},
	{name: "namespace", set: func(r *reader, n *yaml.Node, w *webhook) { w.space = r.nonEmpty(n) }},
	{name: "port", set: func(r *reader, n *yaml.Node, w *webhook) { w.port = r.number(n, 1) }},
	{name: "protocol", set: func(r *reader, n *yaml.Node, w *webhook) { w.protocol = r.choice(n, "http", "https") }},
}
