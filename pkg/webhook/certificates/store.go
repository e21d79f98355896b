package certificates

import (
	"context"
	"errors"
)

// Store keeps the generated certificates.
type Store interface {
	// Load returns the set, and false if there is none yet.
	Load(ctx context.Context) (Set, bool, error)
	// Save replaces the set that Load returned last. The error is ErrChanged if
	// somebody else has done so since.
	Save(ctx context.Context, set Set) error
}

// ErrChanged says that another replica was faster.
var ErrChanged = errors.New("the certificates were replaced by another replica")

// memoryStore is the store of an operator that runs once.
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
