package testenv

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// FreePort returns a port of this machine that is not in use. It is below the range
// that the system assigns to clients, which could take it before the server does.
func FreePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		port := 20000 + rand.N(10000)
		listener, err := net.Listen("tcp", net.JoinHostPort("localhost", strconv.Itoa(port)))
		if err == nil {
			_ = listener.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}
