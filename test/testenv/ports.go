package testenv

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// FreePort finds a port of this machine that nobody uses. It is below those that the
// system gives to clients, of which one could get it before the server does.
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
