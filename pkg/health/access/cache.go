package access

import (
	"crypto/sha256"
	"net/http"
	"sync"
	"time"
)

const (
	// cacheTTL is for how long a verdict is believed: a permission that is taken away
	// ends as soon.
	cacheTTL = time.Minute
	// maxCached is how many verdicts are kept. There are few readers; more than this are
	// somebody who tries tokens.
	maxCached = 256
)

// cacheKey is who wants to do what. The token is not kept.
type cacheKey [sha256.Size]byte

func cacheKeyOf(token string, request *http.Request) cacheKey {
	return sha256.Sum256([]byte(request.Method + "\x00" + request.URL.Path + "\x00" + token))
}

// decisionCache are those of the last minute. The zero value has none. It is safe for
// concurrent use.
type decisionCache struct {
	mu    sync.Mutex
	byKey map[cacheKey]decision
}

type decision struct {
	status  int
	expires time.Time
}

func (c *decisionCache) get(q cacheKey) (status int, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, known := c.byKey[q]
	return found.status, known && time.Now().Before(found.expires)
}

func (c *decisionCache) put(q cacheKey, status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.byKey) >= maxCached || c.byKey == nil {
		c.byKey = map[cacheKey]decision{}
	}
	c.byKey[q] = decision{status, time.Now().Add(cacheTTL)}
}
