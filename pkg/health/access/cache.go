package access

import (
	"crypto/sha256"
	"sync"
	"time"
)

const (
	// cacheTTL is how long a decision is valid, and how soon a revoked permission ends.
	cacheTTL = time.Minute
	// maxCached limits the decisions in memory. There are few legitimate clients; more
	// decisions mean that a client is guessing tokens.
	maxCached = 256
)

// cacheKey identifies a client and its request. It is a hash, so that no token stays in
// memory.
type cacheKey [sha256.Size]byte

// decisionCache holds the recent decisions. The zero value is empty. It is safe for
// concurrent use.
type decisionCache struct {
	mu    sync.Mutex
	byKey map[cacheKey]decision
}

type decision struct {
	status  int
	expires time.Time
}

func (c *decisionCache) get(key cacheKey) (status int, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, known := c.byKey[key]
	return found.status, known && time.Now().Before(found.expires)
}

func (c *decisionCache) put(key cacheKey, status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.byKey) >= maxCached || c.byKey == nil {
		c.byKey = map[cacheKey]decision{}
	}
	c.byKey[key] = decision{status, time.Now().Add(cacheTTL)}
}
