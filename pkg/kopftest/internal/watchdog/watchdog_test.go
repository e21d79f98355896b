package watchdog

import (
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// reports passes on what a watchdog writes.
type reports chan string

func (r reports) Write(text []byte) (int, error) {
	r <- string(text)
	return len(text), nil
}

// A handler that reads from a real socket stops virtual time. The watchdog names it.
func TestASocketIsNamed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	ticks, told, begin := make(chan time.Time), make(reports), make(chan struct{})
	dog := Start(ticks, told)
	go func() {
		<-begin
		for {
			select {
			case ticks <- time.Time{}:
			case text := <-told:
				if !strings.Contains(text, "readsFromASocket") || !strings.Contains(text, "Give the handler a client") {
					t.Errorf("got %s", text)
				}
				_, _ = server.Write([]byte("x"))
				return
			}
		}
	}()
	synctest.Test(t, func(*testing.T) {
		defer dog.Begin()()
		for range 2 * limit { // it is not blocked yet
			dog.look(told)
		}
		close(begin)
		go readsFromASocket(client)
		time.Sleep(time.Hour)
	})
	_, _, _ = listener.Close(), server.Close(), client.Close()
}

func readsFromASocket(from io.Reader) { _, _ = from.Read(make([]byte, 1)) }

// A long computation, and waits in the bubble, are no reason to speak.
func TestABubbleThatWorksIsNotReported(t *testing.T) {
	dog := &Watchdog{waits: map[*wait]struct{}{}}
	var told strings.Builder
	synctest.Test(t, func(*testing.T) {
		end := dog.Begin()
		stop := make(chan struct{})
		go func() { <-stop }()
		synctest.Wait()
		for range 2 * limit {
			dog.look(&told)
		}
		close(stop)
		end()
	})
	if told.Len() > 0 || len(dog.waits) > 0 {
		t.Errorf("got %s", told.String())
	}
}
