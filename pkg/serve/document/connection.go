package document

import (
	"net/url"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Connection is how a webhook of Metacontroller is reached, besides its address. What is not given is empty.
type Connection struct {
	// CABundle has the certificate authorities in PEM, or CABundleFrom refers to them.
	CABundle     string
	CABundleFrom Reference
	// Certificate and Key are those of the operator.
	Certificate, Key Reference
	// Token is the credential of the authorization Scheme.
	Scheme string
	Token  Reference
	// Username and Password are those of the scheme Basic.
	Username, Password Reference
}

// Reference is a key of a Secret, or of a ConfigMap.
type Reference struct{ Kind, Namespace, Name, Key string }

// References returns what the connection refers to.
func (c *Connection) References() []Reference {
	var all []Reference
	for _, each := range []Reference{c.CABundleFrom, c.Certificate, c.Key, c.Token, c.Username, c.Password} {
		if each.Name != "" {
			all = append(all, each)
		}
	}
	return all
}

// endpoint is how the webhooks of a host are reached.
type endpoint struct {
	host       string
	connection Connection
}

var endpointWords = append(words[endpoint]{
	{name: "host", set: func(r *reader, n *yaml.Node, e *endpoint) { e.host = r.nonEmpty(n) }},
}, connectionWordsOf(func(e *endpoint) *Connection { return &e.connection })...)

// endpointOf returns the connection to the host of a webhook, or nil.
func (c *Controller) endpointOf(webhook string) *Connection {
	target, err := url.Parse(webhook)
	if err != nil {
		return nil
	}
	usual := map[string]string{"http": "80", "https": "443"}[target.Scheme]
	for i, e := range c.endpoints {
		host := strings.TrimSuffix(strings.ToLower(e.host), ":"+usual)
		if host == strings.TrimSuffix(strings.ToLower(target.Host), ":"+usual) {
			return &c.endpoints[i].connection
		}
	}
	return nil
}

// connectionWordsOf returns the words about the connection of something.
func connectionWordsOf[T any](of func(*T) *Connection) words[T] {
	var all words[T]
	for _, w := range connectionWords {
		all = append(all, word[T]{name: w.name, set: func(r *reader, n *yaml.Node, into *T) { w.set(r, n, of(into)) }})
	}
	return all
}

var connectionWords = words[Connection]{
	{name: "caBundle", set: func(r *reader, n *yaml.Node, c *Connection) {
		given := decodeWords(r, n, bundleWords, c, "caBundle")
		if len(given) != 1 {
			r.problem(n, "caBundle has exactly one of inline, secretRef, and configMapRef")
		}
	}},
	{name: "clientTLS", set: func(r *reader, n *yaml.Node, c *Connection) {
		c.Certificate, c.Key = r.pair(n, "clientTLS", keyWord{"certKey", "tls.crt"}, keyWord{"privateKeyKey", "tls.key"})
	}},
	{name: "basicAuth", set: func(r *reader, n *yaml.Node, c *Connection) {
		c.Username, c.Password = r.pair(n, "basicAuth", keyWord{"usernameKey", "username"}, keyWord{"passwordKey", "password"})
	}},
	{name: "authorization", set: func(r *reader, n *yaml.Node, c *Connection) {
		c.Scheme = "Bearer"
		given := decodeWords(r, n, authorizationWords, c, "authorization")
		if !given["secretRef"] {
			r.problem(n, "authorization has no secretRef: add secretRef: {name: …, namespace: …, key: …}")
		}
	}},
}

var bundleWords = words[Connection]{
	{name: "inline", set: func(r *reader, n *yaml.Node, c *Connection) { c.CABundle = r.nonEmpty(n) }},
	{name: "secretRef", set: func(r *reader, n *yaml.Node, c *Connection) { c.CABundleFrom = r.reference(n, "Secret", "ca.crt") }},
	{name: "configMapRef", set: func(r *reader, n *yaml.Node, c *Connection) { c.CABundleFrom = r.reference(n, "ConfigMap", "ca.crt") }},
}

var authorizationWords = words[Connection]{
	{name: "type", set: func(r *reader, n *yaml.Node, c *Connection) {
		c.Scheme = r.nonEmpty(n)
		if strings.EqualFold(c.Scheme, "basic") {
			r.problem(n, "authorization cannot have the type Basic: use basicAuth")
		}
	}},
	{name: "secretRef", set: func(r *reader, n *yaml.Node, c *Connection) { c.Token = r.reference(n, "Secret", "") }},
}

// reference decodes a reference to a key of an object. Without a default, the key is required.
func (r *reader) reference(n *yaml.Node, kind, key string) Reference {
	ref := Reference{Kind: kind, Key: key}
	decodeWords(r, n, append(words[Reference]{
		{name: "key", set: func(r *reader, n *yaml.Node, to *Reference) { to.Key = r.nonEmpty(n) }},
	}, objectWords...), &ref, "the reference")
	if !r.failed() && (ref.Name == "" || ref.Namespace == "" || ref.Key == "") {
		r.problem(n, "the reference needs a name, a namespace, and a key")
	}
	return ref
}

var objectWords = words[Reference]{
	{name: "name", set: func(r *reader, n *yaml.Node, to *Reference) { to.Name = r.nonEmpty(n) }},
	{name: "namespace", set: func(r *reader, n *yaml.Node, to *Reference) { to.Namespace = r.nonEmpty(n) }},
}

// keyWord is a word for a key of a Secret, and its default.
type keyWord struct{ name, key string }

// pair decodes two keys of one Secret.
func (r *reader) pair(n *yaml.Node, what string, one, other keyWord) (first, second Reference) {
	var ref Reference
	decodeWords(r, n, words[Reference]{
		{name: "secretRef", set: func(r *reader, n *yaml.Node, to *Reference) { decodeWords(r, n, objectWords, to, "the reference") }},
		{name: one.name, set: func(r *reader, n *yaml.Node, _ *Reference) { one.key = r.nonEmpty(n) }},
		{name: other.name, set: func(r *reader, n *yaml.Node, _ *Reference) { other.key = r.nonEmpty(n) }},
	}, &ref, what)
	if !r.failed() && (ref.Name == "" || ref.Namespace == "") {
		r.problem(n, "%s needs a secretRef with a name and a namespace", what)
	}
	return Reference{"Secret", ref.Namespace, ref.Name, one.key}, Reference{"Secret", ref.Namespace, ref.Name, other.key}
}

// checkConnection reports a connection with two kinds of credentials.
func (r *reader) checkConnection(n *yaml.Node, c *Connection) {
	if c.Token.Name != "" && c.Username.Name != "" {
		r.problem(n, "authorization and basicAuth exclude each other: leave one of them out")
	}
}
