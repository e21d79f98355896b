package testenv

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// given contains the ports that FreePort has returned: their servers may not listen yet.
var given sync.Map

// FreePort returns a port of this machine that is not in use, and was not returned before. It
// is below the range that the system assigns to clients, which could take it before the server
// does.
func FreePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		port := 20000 + rand.N(10000)
		if _, isGiven := given.LoadOrStore(port, true); isGiven {
			continue
		}
		listener, err := net.Listen("tcp", net.JoinHostPort("localhost", strconv.Itoa(port)))
		if err == nil {
			_ = listener.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

// FreeAddress returns an address on loopback with a FreePort.
func FreeAddress(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(FreePort(t)))
}
