package indexing

// Remembered is the number of objects, times indices, of which anything is kept.
func (x *Indexer) Remembered() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.failing)
}
