package login

import (
	"fmt"
	"io"
	"time"

	"k8s.io/client-go/rest"
)

// Connection is what a login handler returns: where the cluster is, and the
// credentials for it. Printing or logging it shows no credentials.
//
// Specification: Authentication, ConnectionInfo.
type Connection struct {
	// Config reaches the cluster, by any means that client-go has. It is required,
	// and copied. Rate limits, timeout and user agent are taken from the first
	// connection of an operator and remain; the rest belongs to this connection.
	Config *rest.Config
	// Expires is when the credentials become invalid. They are not used from a
	// little before: a tenth of their life, 10 seconds at most. Default: never.
	Expires time.Time
	// Priority decides between the connections of several handlers: the highest
	// is used, and those of the same in the order of the handlers' ids.
	Priority int
}

// String tells where the connection leads to, and how long.
func (c Connection) String() string {
	text := fmt.Sprintf("connection to %s, priority %d", describeServer(c.Config), c.Priority)
	if !c.Expires.IsZero() {
		text += ", expires " + c.Expires.UTC().Format(time.RFC3339)
	}
	return text
}

// Format keeps all verbs of package fmt from showing the fields.
func (c Connection) Format(to fmt.State, _ rune) { _, _ = io.WriteString(to, c.String()) }

// MarshalText keeps encoders, such as that of JSON and those of loggers, from
// showing the fields.
func (c Connection) MarshalText() ([]byte, error) { return []byte(c.String()), nil }
