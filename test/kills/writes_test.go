package kills

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/test/testenv"
)

var errDead = errors.New("the operator is dead")

// write is a request that changes something.
type write struct {
	number       int
	method, path string
	dry          bool
	code         int
	// answer is the object after the write, if the API server answers with it.
	answer []byte
}

func (w write) String() string {
	dry := ""
	if w.dry {
		dry = " (dry run)"
	}
	return fmt.Sprintf("write %d: %s %s%s: %d", w.number, w.method, w.path, dry, w.code)
}

// target returns the resource and the name of the object, as "configmaps/one".
func (w write) target() string {
	parts := strings.Split(strings.Trim(w.path, "/"), "/")
	return strings.Join(parts[len(parts)-2:], "/")
}

// uid returns the uid of the object after the write.
func (w write) uid() types.UID {
	var object struct {
		Metadata struct {
			UID types.UID `json:"uid"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(w.answer, &object)
	return object.Metadata.UID
}

// isWrite reports whether a request changes an object. Questions about permissions change none.
func isWrite(request *http.Request) bool {
	return request.Method != http.MethodGet && !strings.Contains(request.URL.Path, "/authorization.k8s.io/")
}

// through returns the connection of an operator, which ends with its death.
func (l *life) through(p *process) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return testenv.RoundTripper(func(sent *http.Request) (*http.Response, error) {
			if p.dead.Load() {
				return nil, errDead
			}
			if isWrite(sent) {
				return l.write(p, sent, next)
			}
			answer, err := next.RoundTrip(sent)
			if err == nil && p.dead.Load() {
				_ = answer.Body.Close()
				return nil, errDead
			}
			return answer, err
		})
	}
}

// write sends a write, unless the operator dies before it.
func (l *life) write(p *process, sent *http.Request, next http.RoundTripper) (*http.Response, error) {
	w, isAlive := l.begin(p, sent)
	if !isAlive {
		return nil, errDead
	}
	defer p.writes.Done()
	answer, err := next.RoundTrip(sent)
	if err != nil {
		return nil, err
	}
	if err := l.note(w, answer); err != nil {
		return nil, err
	}
	if w.number == l.kill.number {
		l.die(p)
	}
	if p.dead.Load() {
		return nil, errDead // the answer is lost
	}
	return answer, nil
}

// begin counts a write. It returns false if the operator is dead, or dies now.
func (l *life) begin(p *process, sent *http.Request) (w write, isAlive bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.dead.Load() {
		return w, false
	}
	l.begun++
	if l.begun == l.kill.number && !l.kill.after {
		p.dead.Store(true)
		return w, false
	}
	p.writes.Add(1)
	return write{number: l.begun, method: sent.Method, path: sent.URL.Path, dry: sent.URL.Query().Has("dryRun")}, true
}

// die ends the operator, so that no other write of it begins.
func (l *life) die(p *process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.dead.Store(true)
}

// note keeps a write with its answer.
func (l *life) note(w write, answer *http.Response) error {
	content, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		return err
	}
	answer.Body = io.NopCloser(bytes.NewReader(content))
	w.code, w.answer = answer.StatusCode, content
	l.mu.Lock()
	defer l.mu.Unlock()
	l.committed = append(l.committed, w)
	l.watching(w)
	return nil
}

// hasSucceeded reports whether the write has changed an object.
func (w write) hasSucceeded() bool { return w.code < http.StatusMultipleChoices && !w.dry }
