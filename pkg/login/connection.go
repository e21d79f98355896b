package login

import (
	"fmt"
	"io"
	"time"

	"k8s.io/client-go/rest"
)

// Connection is the result of a login handler: the address of the cluster, and the
// credentials for it. Printing or logging it shows no credentials.
//
// Specification: Authentication, ConnectionInfo.
type Connection struct {
	// Config connects to the cluster by any means of client-go. It is required, and is
	// copied. Rate limits, timeout and user agent are those of the first connection of an
	// operator; everything else belongs to this connection.
	Config *rest.Config
	// Expires is when the credentials expire. They are replaced shortly before: a tenth
	// of their remaining life, 10 seconds at most. Default: never.
	Expires time.Time
	// Priority decides between the connections of several handlers: the highest priority
	// is used first. Connections of the same priority are used in the order of the
	// handlers' IDs. Default: 0.
	Priority int
}

// String returns the address, the priority and the expiry of the connection.
func (c Connection) String() string {
	server := "nowhere"
	if base, err := serverURLOf(c.Config); err == nil {
		server = withoutUserinfo(base).String()
	}
	text := fmt.Sprintf("connection to %s, priority %d", server, c.Priority)
	if !c.Expires.IsZero() {
		text += ", expires " + c.Expires.UTC().Format(time.RFC3339)
	}
	return text
}

// Format hides the fields from all verbs of package fmt.
func (c Connection) Format(to fmt.State, _ rune) { _, _ = io.WriteString(to, c.String()) }

// MarshalText hides the fields from encoders, such as JSON and those of loggers.
func (c Connection) MarshalText() ([]byte, error) { return []byte(c.String()), nil }
