// Package kube is the engine's client of the Kubernetes API: it reads and watches
// objects as compact snapshots, straight from the bytes of the responses, and writes
// them with merge patches. It decodes nothing that is not asked for.
//
// # Why not client-go alone
//
// Retries are made here, because client-go repeats every request that is answered with
// Retry-After, writes included. The API server sends that header with timeouts, too,
// when the write may have been committed: its repetition would then be answered with a
// conflict, which claims that nothing was written.
//
// Watch events and lists are decoded here, because client-go parses the JSON of every
// watch event four times before it reaches the object, a third of the CPU time that
// the watches of an operator take. Objects are kept as the compact bytes that the
// decoder cuts out of the response, while client-go's caches keep parsed maps or
// structs, which take several times the memory.
package kube
