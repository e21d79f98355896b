package peering

import (
	"cmp"
	"crypto/rand"
	"os"
	"os/user"
	"strings"
	"time"
)

// podVariable names the pod in deployments that want its entry recognized.
const podVariable = "POD_ID"

// NewIdentity names this operator among its peers: as $POD_ID says, or else
// user@host/timestamp/random. Every call makes another one where there is no
// $POD_ID; operators that share a process and a peering need identities of their
// own.
func NewIdentity() string {
	if pod := os.Getenv(podVariable); pod != "" {
		return pod
	}
	suffix := strings.ToLower(rand.Text()[:6])
	return ManualIdentity() + "/" + time.Now().UTC().Format("20060102150405") + "/" + suffix
}

// ManualIdentity names a person at a machine, user@host: the same for every
// command, so that one can undo what another has done.
func ManualIdentity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return userName() + "@" + host
}

// userName is that of the process. In a container the user often has no name.
func userName() string {
	if current, err := user.Current(); err == nil {
		return cmp.Or(current.Username, current.Uid)
	}
	return cmp.Or(os.Getenv("USER"), "unknown")
}
