package access

import (
	"crypto/sha256"
	"net/http"
	"sync"
	"time"
)

const (
	// kept is for how long a verdict is believed: a permission that is taken away
	// ends as soon.
	kept = time.Minute
	// most is how many verdicts are kept. There are few readers; more than this are
	// somebody who tries tokens.
	most = 256
)

// question is who wants to do what. The token is not kept.
type question [sha256.Size]byte

func questionOf(token string, request *http.Request) question {
	return sha256.Sum256([]byte(request.Method + "\x00" + request.URL.Path + "\x00" + token))
}

// verdicts are those of the last minute. The zero value has none. It is safe for
// concurrent use.
type verdicts struct {
	mu    sync.Mutex
	known map[question]verdict
}

type verdict struct {
	status int
	until  time.Time
}

func (v *verdicts) get(q question) (status int, known bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	found, known := v.known[q]
	return found.status, known && time.Now().Before(found.until)
}

func (v *verdicts) put(q question, status int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.known) >= most || v.known == nil {
		v.known = map[question]verdict{}
	}
	v.known[q] = verdict{status, time.Now().Add(kept)}
}
