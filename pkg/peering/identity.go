package peering

import (
	"cmp"
	"crypto/rand"
	"os"
	"os/user"
	"strings"
	"time"
)

// podVariable is the environment variable with the name of the pod.
const podVariable = "POD_ID"

// NewIdentity returns a name of this operator among its peers: $POD_ID, or else
// user@host/timestamp/random. Without $POD_ID every call returns another name. Operators
// that share a process and a peering need separate identities.
func NewIdentity() string {
	if pod := os.Getenv(podVariable); pod != "" {
		return pod
	}
	suffix := strings.ToLower(rand.Text()[:6])
	return ManualIdentity() + "/" + time.Now().UTC().Format("20060102150405") + "/" + suffix
}

// ManualIdentity returns the name of a person on a machine, user@host. It is the same for
// every command, so that one command can undo another.
func ManualIdentity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return userName() + "@" + host
}

// userName returns the user of the process, who often has no name in a container.
func userName() string {
	if current, err := user.Current(); err == nil {
		return cmp.Or(current.Username, current.Uid)
	}
	return cmp.Or(os.Getenv("USER"), "unknown")
}
