package certificates

import (
	"context"
	"errors"
)

// Store keeps the generated certificates.
type Store interface {
	// Load returns the set, and whether there is one.
	Load(ctx context.Context) (Set, bool, error)
	// Save replaces the set that Load returned last. It returns ErrChanged if the set
	// has changed since.
	Save(ctx context.Context, set Set) error
}

// ErrChanged means that another replica has changed the set.
var ErrChanged = errors.New("the certificates were replaced by another replica")

// memoryStore is the store of an operator without replicas.
type memoryStore struct{ set *Set }

func (m *memoryStore) Load(context.Context) (Set, bool, error) {
	if m.set == nil {
		return Set{}, false, nil
	}
	return *m.set, true, nil
}

func (m *memoryStore) Save(_ context.Context, set Set) error {
	m.set = &set
	return nil
}
