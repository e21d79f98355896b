package admission

import (
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// service forwards connections to replicas, as a Service does: it knows nothing of requests, repeats
// nothing, and leaves open connections alone when a replica is removed.
type service struct {
	listener net.Listener

	mu    sync.Mutex
	ports []int
	next  int
	// used counts the reads from API servers, by the replica that got them.
	used map[int]int
	// lost counts the connections that a replica has not accepted, or has ended while they were open.
	lost map[int]int
}

// learning is how late a service learns that a replica stops. On a busy machine, the service itself is
// late, too.
const learning = 200 * time.Millisecond

func newService(t *testing.T) *service {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	s := &service{listener: listener, used: map[int]int{}, lost: map[int]int{}}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go s.forward(connection)
		}
	}()
	return s
}

func (s *service) url() string { return "https://" + s.listener.Addr().String() }

func (s *service) add(port int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ports = append(s.ports, port)
}

// remove removes a replica. Its open connections stay.
func (s *service) remove(port int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ports = slices.DeleteFunc(s.ports, func(one int) bool { return one == port })
}

// removeLate removes a replica that was asked to stop, or was killed. It closes the channel then.
func (s *service) removeLate(port int) (removed <-chan struct{}) {
	done := make(chan struct{})
	time.AfterFunc(learning, func() {
		s.remove(port)
		close(done)
	})
	return done
}

// usedBy returns how often API servers have sent something to a replica.
func (s *service) usedBy(port int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used[port]
}

func (s *service) lostBy(port int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost[port]
}

func (s *service) count(counts map[int]int, port int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts[port]++
}

// forward connects to the next replica, and copies until both sides have ended.
func (s *service) forward(from net.Conn) {
	defer func() { _ = from.Close() }()
	s.mu.Lock()
	s.next++
	port := s.ports[s.next%len(s.ports)]
	s.mu.Unlock()
	to, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		s.count(s.lost, port)
		return
	}
	defer func() { _ = to.Close() }()
	var both sync.WaitGroup
	ended := make(chan struct{})
	both.Go(func() {
		_, _ = io.Copy(counting{to, func() { s.count(s.used, port) }}, from)
		close(ended)
		_ = to.(*net.TCPConn).CloseWrite()
	})
	both.Go(func() {
		_, _ = io.Copy(from, to)
		select {
		case <-ended:
		default:
			s.count(s.lost, port)
		}
		_ = from.(*net.TCPConn).CloseWrite()
	})
	both.Wait()
}

// counting calls a function for each write.
type counting struct {
	io.Writer
	note func()
}

func (c counting) Write(content []byte) (int, error) {
	c.note()
	return c.Writer.Write(content)
}
