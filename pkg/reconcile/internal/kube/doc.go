// Package kube is the engine's client of the Kubernetes API. It reads and watches objects as
// compact snapshots, directly from the bytes of the responses, and writes them with merge
// patches. It decodes only what is needed.
//
// # Why not client-go alone
//
// The package retries requests itself, because client-go repeats every request whose response
// has a Retry-After header, including writes. The API server also sends that header with
// timeouts, when the write may have been committed: repeating it could then result in a
// conflict, which suggests that nothing was written.
//
// The package decodes watch events and lists itself. The client-go library parses the JSON of
// every watch event four times before it decodes the object, which takes a third of the CPU
// time of an operator's watches. Objects are kept as the compact bytes from the response. The
// caches of client-go keep parsed maps or structs, which take several times the memory.
package kube
