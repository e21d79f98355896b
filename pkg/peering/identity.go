package peering

import (
	"cmp"
	"context"
	"crypto/rand"
	"net"
	"net/netip"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"
)

// podVariable is the environment variable with the name of the pod.
const podVariable = "POD_ID"

// lookupTimeout limits how long the name service may take to name this machine.
const lookupTimeout = 2 * time.Second

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

// ManualIdentity returns the name of a person on a machine: $POD_ID, or else user@host. It is
// the same for every command, so that one command can undo another, and the same as Kopf's,
// so that its commands can, too.
func ManualIdentity() string {
	if pod := os.Getenv(podVariable); pod != "" {
		return pod
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	name := cmp.Or(os.Getenv("USER"), "unknown")
	if current, err := user.Current(); err == nil {
		name = cmp.Or(current.Username, current.Uid) // in a container, users often have no name
	}
	return name + "@" + hostName(host, namesOf(ctx, host))
}

// namesOf returns the names that the name service has for this machine, without the dot at
// the end.
func namesOf(ctx context.Context, host string) []string {
	addresses, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil || len(addresses) == 0 {
		return nil
	}
	names, err := net.DefaultResolver.LookupAddr(ctx, addresses[0])
	if err != nil {
		return nil
	}
	for i, name := range names {
		names[i] = strings.TrimSuffix(name, ".")
	}
	return names
}

// hostName chooses the name of a machine that says most to people, without the suffixes that
// say nothing: a qualified name, or else any name that is not an address. Kopf chooses the
// same.
func hostName(host string, names []string) string {
	isName := func(name string) bool {
		_, err := netip.ParseAddr(name)
		return err != nil && !strings.HasSuffix(name, ".arpa")
	}
	chosen := host
	if i := slices.IndexFunc(names, func(name string) bool { return isName(name) && strings.Contains(name, ".") }); i >= 0 {
		chosen = names[i]
	} else if i := slices.IndexFunc(names, func(name string) bool { return isName(name) && name != "localhost" }); i >= 0 {
		chosen = names[i]
	}
	for strings.HasSuffix(chosen, ".local") || strings.HasSuffix(chosen, ".localdomain") {
		chosen = strings.TrimSuffix(strings.TrimSuffix(chosen, ".localdomain"), ".local")
	}
	return chosen
}
