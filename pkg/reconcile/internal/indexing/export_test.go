package indexing

// Failures returns the number of failures that are kept, one per object and index.
func (x *Indexer) Failures() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.failing)
}
